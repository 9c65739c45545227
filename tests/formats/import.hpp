// What the tests of imports share: reading text or files of ../shared/inputs, and asking what came
// out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/importer.hpp"
#include "tests/shared_files.hpp"

/// Ends the test where the folder beside the project is absent.
#define READ_SHARED_OR_SKIP(variable, file, ...)         \
  NEEDS_SHARED("../shared/inputs/" file);                \
  const auto variable = attnsim::formats::read_topology( \
      attnsim::formats::read_source("../shared/inputs/" file), ##__VA_ARGS__)

namespace attnsim::formats {

inline topology read_text(const std::string& text, const settings& given = {},
                          const std::string& as = "") {
  return read_topology({"f", text}, given, as);
}

struct counts {
  std::size_t devices, nics, switches, hosts, cables;
  bool operator==(const counts&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const counts& c) {
    return out << c.devices << " devices, " << c.nics << " NICs, " << c.switches << " switches, "
               << c.hosts << " hosts, " << c.cables << " cables";
  }
};

inline counts counts_of(const topology& t) {
  return {t.count(part_kind::device), t.count(part_kind::nic), t.count(part_kind::switch_),
          t.count(part_kind::host), t.cables.size()};
}

/// GB/s of the cables between two parts, by their names, in either direction.
inline std::vector<double> rates(const topology& t, const std::string& a, const std::string& b) {
  std::vector<double> found;
  for (const auto& c : t.cables) {
    const auto &from = t.parts[c.from].name, &to = t.parts[c.to].name;
    if ((from == a && to == b) || (from == b && to == a)) found.push_back(c.rate.value() / 1e9);
  }
  return found;
}

/// GB/s of all cables of a kind.
inline std::vector<double> rates(const topology& t, link_kind kind) {
  std::vector<double> found;
  for (const auto& c : t.cables) {
    if (c.kind == kind) found.push_back(c.rate.value() / 1e9);
  }
  return found;
}

/// The names of the parts that a part has cables to, sorted.
inline std::vector<std::string> neighbours(const topology& t, const std::string& name) {
  std::vector<std::string> found;
  for (const auto& c : t.cables) {
    if (t.parts[c.from].name == name) found.push_back(t.parts[c.to].name);
    if (t.parts[c.to].name == name) found.push_back(t.parts[c.from].name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace attnsim::formats
