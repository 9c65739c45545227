#include "model/topology_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>

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

}  // namespace

std::string find_topology_file(std::string_view folder, const std::string& name_or_file) {
  if (is_file(name_or_file)) return name_or_file;
  for (const auto& root : roots()) {
    const auto path = root / folder / (name_or_file + ".yaml");
    if (is_file(path)) return path.string();
  }
  throw std::invalid_argument(
      fmt::format("expected a file or one of: {}", fmt::join(shipped_names(folder), ", ")));
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
