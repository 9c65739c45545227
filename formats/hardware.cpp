#include "formats/hardware.hpp"

#include <charconv>
#include <functional>

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
  item.allow_only({"name", "profile", "pci", "sm", "nvlinks", "nvlink", "pcie"});
  known_device d{.name = item.get<std::string>("name"),
                 .profile = item.get<std::string>("profile", ""),
                 .sm = item.get_integer("sm", 0, 0),
                 .nvlinks = item.get_within("nvlinks", 0, 64),
                 .nvlink_rate = item.get<bandwidth>("nvlink", {}),
                 .pcie = item.get<double>("pcie")};
  if (item.has("pci")) {
    for (const auto& id : item.at("pci").items()) d.pci_ids.push_back(hexadecimal(id));
  }
  return d;
}

hardware read_hardware() {
  const auto root = config_node::load(find_topology_file("", "hardware"));
  root.allow_only({"devices", "unknown", "nic_by_pcie", "latency", "socket_bandwidth"});
  hardware h;
  for (const auto& item : root.at("devices").items()) h.devices.push_back(read_known_device(item));
  h.unknown = read_known_device(root.at("unknown"));
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

const known_device& first(const hardware& h, const std::function<bool(const known_device&)>& fits) {
  for (const auto& d : h.devices) {
    if (fits(d)) return d;
  }
  return h.unknown;
}

}  // namespace

const known_device& hardware::by_pci_id(std::int64_t id) const {
  return first(*this, [&](const auto& d) {
    return std::find(d.pci_ids.begin(), d.pci_ids.end(), id) != d.pci_ids.end();
  });
}
const known_device& hardware::by_sm(std::int64_t sm) const {
  return first(*this, [&](const auto& d) { return d.sm == sm; });
}
const known_device& hardware::by_nvlinks(int links) const {
  return first(*this, [&](const auto& d) { return links > 0 && d.nvlinks == links; });
}
const known_device& hardware::by_pcie(double gigatransfers) const {
  return first(*this, [&](const auto& d) { return d.nvlinks > 0 && d.pcie == gigatransfers; });
}
const known_device& hardware::by_profile(std::string_view profile) const {
  return first(*this, [&](const auto& d) { return d.profile == profile; });
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
