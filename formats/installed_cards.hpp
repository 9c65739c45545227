// The GPUs of this machine as Linux lists them, without a driver: what a program can say of a machine that it was not built for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnsim::formats {

/// Cards of one kind.
struct installed_cards {
  std::int64_t pci_id = 0;  ///< vendor << 16 | device, as "10de:2330" is written
  std::string name;         ///< known_device::name; empty: unknown (topologies/hardware.yaml)
  std::string profile;      ///< the shipped device that it is; empty: none
  int count = 0;
};

/// NVIDIA's and AMD's display and compute cards, by PCI id; none where `folder` does not exist.
std::vector<installed_cards> find_installed_cards(
    const std::string& folder = "/sys/bus/pci/devices");

/// "10de:2330".
std::string pci_name(std::int64_t pci_id);

}  // namespace attnsim::formats
