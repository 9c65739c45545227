#include "formats/installed_cards.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "formats/hardware.hpp"

namespace attnsim::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t nvidia = 0x10de, amd = 0x1002;
constexpr std::int64_t display = 0x03, accelerator = 0x12;  // base classes of PCI

/// What a file of sysfs holds, such as "0x10de"; 0: it can't be read.
std::int64_t hexadecimal_in(const fs::path& file) {
  std::ifstream stream(file);
  std::int64_t value = 0;
  stream >> std::hex >> value;
  return stream ? value : 0;
}

/// 0: no GPU.
std::int64_t gpu_at(const fs::path& device) {
  const auto vendor = hexadecimal_in(device / "vendor");
  const auto base_class = hexadecimal_in(device / "class") >> 16;
  const bool made_by = vendor == nvidia || vendor == amd;
  const bool computes = base_class == display || base_class == accelerator;
  return made_by && computes ? vendor << 16 | hexadecimal_in(device / "device") : 0;
}

}  // namespace

std::vector<installed_cards> find_installed_cards(const std::string& folder) {
  std::map<std::int64_t, int> counts;
  std::error_code missing;
  for (const auto& device : fs::directory_iterator(folder, missing)) {
    if (const auto id = gpu_at(device.path())) ++counts[id];
  }
  std::vector<installed_cards> found;
  for (const auto& [id, count] : counts) {
    const auto* known = known_hardware().by_pci_id(id & 0xffff);
    found.push_back({.pci_id = id,
                     .name = known ? known->name : "",
                     .profile = known ? known->profile : "",
                     .count = count});
  }
  return found;
}

std::string pci_name(std::int64_t pci_id) {
  return fmt::format("{:04x}:{:04x}", pci_id >> 16, pci_id & 0xffff);
}

}  // namespace attnsim::formats
