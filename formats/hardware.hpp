// What files leave out: which device a PCI id means, NVLink and PCIe rates, latencies. The numbers
// and their sources are in topologies/hardware.yaml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.hpp"

namespace attnsim::formats {

struct known_device {
  std::string name;                ///< "H100 SXM5"
  std::string profile;             ///< a shipped device; empty: none
  std::vector<std::string> names;  ///< as drivers print it, and of machines that have it
  std::vector<std::int64_t> pci_ids;
  std::int64_t sm = 0;    ///< compute capability x 10
  std::string gfx;        ///< AMD's; empty: NVIDIA
  bool grace = false;     ///< beside a Grace CPU
  bool nvswitch = false;  ///< all of a node on a switch
  int nvlinks = 0;        ///< AMD: XGMI links
  bandwidth nvlink_rate;  ///< of one, each direction
  double pcie = 0;        ///< GT/s a lane, x16

  std::string_view link_name() const { return gfx.empty() ? "NVLink" : "XGMI link"; }
};

/// Direct links between the devices of a node whose files do not tell them.
struct known_mesh {
  std::string device;                   ///< its name
  std::vector<std::vector<int>> links;  ///< by two devices
};

struct hardware {
  std::vector<known_device> devices;
  known_device unknown;
  std::vector<known_mesh> meshes;
  std::vector<std::pair<double, bandwidth>> nic_by_pcie;  ///< slot's GT/s, NIC's rate
  seconds nvlink_latency, pcie_latency, socket_latency, nic_latency, switch_latency;
  bandwidth socket_rate;

  const known_device* by_pci_id(std::int64_t id) const;                        ///< null: none
  const known_device& by_profile(std::string_view profile) const;              ///< or `unknown`
  const known_mesh* mesh(std::string_view device, std::size_t devices) const;  ///< null: none

  bandwidth nic_rate(double gigatransfers) const;
};

const hardware& known_hardware();

/// PCIe's rate each direction after line coding: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s.
bandwidth pcie_rate(double gigatransfers, int lanes);

}  // namespace attnsim::formats
