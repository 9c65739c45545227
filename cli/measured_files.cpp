#include "cli/measured_files.hpp"

#include <fmt/format.h>

#include "calibrate/predicted.hpp"

namespace attnsim::cli {

located_file split_at_cluster(const std::string& text) {
  const auto at = text.rfind('@');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

compared_point compared(const measurement& m, const cluster& c) {
  return compared(part_of(m.what), fmt::format("{}: {}", c.name, describe(m.what)),
                  predicted_time(m.what, c), uncertainty_of(m.what, c), seconds(m.median()));
}

const cluster* cluster_shelf::find(const std::string& name, const cluster_overrides& overrides) {
  if (name.empty()) return nullptr;
  const auto known = read_.find(name);
  if (known != read_.end()) return &known->second;
  return &read_.emplace(name, read_cluster(name, overrides)).first->second;
}

}  // namespace attnsim::cli
