#include "model/topology_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "model/config.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> roots() {
  std::vector<fs::path> result;
  if (const char* folder = std::getenv("ATTNSIM_TOPOLOGIES")) result.emplace_back(folder);
  result.emplace_back(ATTNSIM_SOURCE_TOPOLOGIES);
  result.emplace_back(ATTNSIM_INSTALLED_TOPOLOGIES);
  return result;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// What a short name stands for (topologies/aliases.yaml); empty: nothing.
std::string meant_by(std::string_view folder, const std::string& name) {
  for (const auto& root : roots()) {
    const auto path = root / "aliases.yaml";
    if (!is_file(path)) continue;
    const auto aliases = config_node::load(path.string());
    if (aliases.has(folder) && aliases.at(folder).has(name))
      return aliases.at(folder).get<std::string>(name);
  }
  return "";
}

}  // namespace

std::string find_topology_file(std::string_view folder, const std::string& name_or_file) {
  if (is_file(name_or_file)) return name_or_file;
  for (const auto& root : roots()) {
    const auto path = root / folder / (name_or_file + ".yaml");
    if (is_file(path)) return path.string();
  }
  if (const auto meant = meant_by(folder, name_or_file); !meant.empty())
    return find_topology_file(folder, meant);
  const auto names = shipped_names(folder);
  throw std::invalid_argument(fmt::format("expected a file or one of: {}{}", fmt::join(names, ", "),
                                          did_you_mean(name_or_file, names)));
}

std::vector<std::string> shipped_names(std::string_view folder) {
  std::set<std::string> names;
  for (const auto& root : roots()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(root / folder, ignored)) {
      if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace attnsim
