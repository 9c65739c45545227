// What the charts of report.js are made of.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace attnsim::report {

using json = nlohmann::ordered_json;

/// Names of colours in style.css.
namespace colour {
inline constexpr const char* compute = "compute";
inline constexpr const char* more_compute = "compute-more";
inline constexpr const char* other = "other";
inline constexpr const char* communication = "communication";
inline constexpr const char* waiting = "waiting";
}  // namespace colour

inline json series(const std::string& name, const char* colour) {
  return {{"name", name}, {"colour", colour}};
}

}  // namespace attnsim::report
