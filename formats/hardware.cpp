#include "formats/hardware.hpp"

#include <algorithm>
#include <charconv>

#include "model/config.hpp"
#include "model/topology_files.hpp"

namespace attnsim::formats {
namespace {

std::int64_t hexadecimal(const config_node& item) {
  const auto text = item.as<std::string>();
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  if (!text.starts_with("0x") || std::from_chars(text.data() + 2, end, value, 16).ptr != end) {
    item.fail("", "expected a hexadecimal number, such as 0x2330");
  }
  return value;
}

known_device read_known_device(const config_node& item) {
  item.allow_only({"name", "profile", "names", "pci", "sm", "gfx", "grace", "nvswitch", "nvlinks",
                   "nvlink", "pcie"});
  known_device d{.name = item.get<std::string>("name"),
                 .profile = item.get<std::string>("profile", ""),
                 .sm = item.get_integer("sm", 0, 0),
                 .gfx = item.get<std::string>("gfx", ""),
                 .grace = item.get<bool>("grace", false),
                 .nvswitch = item.get<bool>("nvswitch", false),
                 .nvlinks = item.get_within("nvlinks", 0, 64),
                 .nvlink_rate = item.get<bandwidth>("nvlink", {}),
                 .pcie = item.get<double>("pcie")};
  if (item.has("pci")) {
    for (const auto& id : item.at("pci").items()) d.pci_ids.push_back(hexadecimal(id));
  }
  if (item.has("names")) {
    for (const auto& name : item.at("names").items()) d.names.push_back(name.as<std::string>());
  }
  return d;
}

known_mesh read_mesh(const config_node& item) {
  item.allow_only({"device", "links"});
  known_mesh m{.device = item.get<std::string>("device"), .links = {}};
  for (const auto& row : item.at("links").items()) {
    auto& links = m.links.emplace_back();
    for (const auto& n : row.items()) links.push_back(static_cast<int>(n.as<std::int64_t>()));
  }
  return m;
}

hardware read_hardware() {
  const auto root = config_node::load(find_topology_file("", "hardware"));
  root.allow_only({"devices", "unknown", "meshes", "nic_by_pcie", "latency", "socket_bandwidth"});
  hardware h;
  for (const auto& item : root.at("devices").items()) h.devices.push_back(read_known_device(item));
  h.unknown = read_known_device(root.at("unknown"));
  for (const auto& item : root.at("meshes").items()) h.meshes.push_back(read_mesh(item));
  for (const auto& [key, rate] : root.at("nic_by_pcie").entries()) {
    h.nic_by_pcie.emplace_back(std::stod(key), rate.as<bandwidth>());
  }
  const auto latency = root.at("latency");
  latency.allow_only({"nvlink", "pcie", "socket", "nic", "switch"});
  h.nvlink_latency = latency.get<seconds>("nvlink");
  h.pcie_latency = latency.get<seconds>("pcie");
  h.socket_latency = latency.get<seconds>("socket");
  h.nic_latency = latency.get<seconds>("nic");
  h.switch_latency = latency.get<seconds>("switch");
  h.socket_rate = root.get<bandwidth>("socket_bandwidth");
  return h;
}

}  // namespace

const known_device* hardware::by_pci_id(std::int64_t id) const {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const auto& d) {
    return std::find(d.pci_ids.begin(), d.pci_ids.end(), id) != d.pci_ids.end();
  });
  return found != devices.end() ? &*found : nullptr;
}

const known_device& hardware::by_profile(std::string_view profile) const {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const auto& d) { return d.profile == profile; });
  return found != devices.end() ? *found : unknown;
}

const known_mesh* hardware::mesh(std::string_view device, std::size_t count) const {
  const auto found = std::find_if(meshes.begin(), meshes.end(), [&](const auto& m) {
    return m.device == device && m.links.size() == count;
  });
  return found != meshes.end() ? &*found : nullptr;
}

bandwidth hardware::nic_rate(double gigatransfers) const {
  auto rate = nic_by_pcie.front().second;
  for (const auto& [slot, slot_rate] : nic_by_pcie) {
    if (slot <= gigatransfers) rate = slot_rate;
  }
  return rate;
}

const hardware& known_hardware() {
  static const hardware known = read_hardware();
  return known;
}

bandwidth pcie_rate(double gigatransfers, int lanes) {
  const double coding = gigatransfers <= 5 ? 8.0 / 10 : 128.0 / 130;
  return bandwidth(gigatransfers * 1e9 / 8 * lanes * coding);
}

}  // namespace attnsim::formats
