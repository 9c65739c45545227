#include "cli/measured_files.hpp"

namespace attnsim::cli {

located_file split_at_cluster(const std::string& text) {
  const auto at = text.rfind('@');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

const cluster* cluster_shelf::find(const std::string& name, const cluster_overrides& overrides) {
  if (name.empty()) return nullptr;
  const auto known = read_.find(name);
  if (known != read_.end()) return &known->second;
  return &read_.emplace(name, read_cluster(name, overrides)).first->second;
}

}  // namespace attnsim::cli
