#include "model/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "model/cluster/explicit_graph.hpp"
#include "model/cluster/node_router.hpp"
#include "model/config.hpp"
#include "model/topology_files.hpp"

namespace attnsim {
namespace {

constexpr int most_devices = 1 << 20;
constexpr int most_devices_per_node = 4096;

constexpr std::string_view keys_of_nodes[]{"name",   "source",           "device",     "host",
                                           "nodes",  "devices_per_node", "node",       "nics",
                                           "fabric", "slow_devices",     "slow_links", "assumed"};
constexpr std::string_view keys_of_graph[]{"name",  "source",       "device",     "host",
                                           "graph", "slow_devices", "slow_links", "assumed"};

/// device.KEY or host.KEY: of a profile in a file of its own.
bool is_elsewhere(const std::string& key, const config_node& root) {
  for (const std::string profile : {"device", "host"}) {
    if (key.starts_with(profile + ".")) return root.has(profile) && !root.at(profile).is_map();
  }
  return false;
}

/// Device and host first, so that settings of their keys go to what they name.
void apply(const cluster_overrides& overrides, config_node& root) {
  if (!overrides.device.empty()) root.set("device", overrides.device, asked("device"));
  if (!overrides.host.empty()) root.set("host", overrides.host, asked("host"));
  for (const auto& [key, value] : overrides.set) {
    if (!is_elsewhere(key, root)) root.set(key, value);
  }
  if (overrides.nodes == 0) return;
  if (root.has("graph")) {
    throw input_error(asked("nodes"), std::to_string(overrides.nodes),
                      "expected a cluster with a fabric, this one is an explicit graph");
  }
  root.set("nodes", std::to_string(overrides.nodes), asked("nodes"));
}

/// The device's or host's: what stands under `key`, or the file of `folder` that it names with what is set of its keys.
config_node profile(const config_node& root, const std::string& key, std::string_view folder,
                    const cluster_overrides& overrides) {
  if (root.at(key).is_map()) return root.at(key);
  auto file = config_node::load(root.get_as(
      key, [&](std::string_view name) { return find_topology_file(folder, std::string(name)); }));
  const auto prefix = key + ".";
  for (const auto& [path, value] : overrides.set) {
    if (path.starts_with(prefix))
      file.set(path.substr(prefix.size()), value, asked("set") + (": " + path));
  }
  return file;
}

void read_nodes(const config_node& root, cluster& result) {
  root.allow_only(keys_of_nodes);
  result.devices_per_node = root.get_within("devices_per_node", 1, most_devices_per_node);
  result.nodes = root.get_within("nodes", 1, most_devices / result.devices_per_node);
  result.network = build_node_network(root, result.nodes, result.devices_per_node);
}

void read_graph(const config_node& root, cluster& result) {
  root.allow_only(keys_of_graph);
  result.network = build_explicit_graph(root.at("graph"));
  for (int d = 0; d < result.devices(); ++d) {
    const int node = result.network.node_of(d);
    if (node < 0) {
      result.nodes = 0;
      return;
    }
    result.nodes = std::max(result.nodes, node + 1);
  }
}

double read_factor(const config_node& node) {
  const auto factor = node.as<double>();
  if (factor <= 0 || factor > 1) node.fail("", "expected a share above 0 and at most 1");
  return factor;
}

void slow_down_devices(const config_node& slow, cluster& result) {
  for (const auto& [key, value] : slow.entries()) {
    int device = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), device);
    if (error != std::errc{} || end != key.data() + key.size() || device < 0 ||
        device >= result.devices()) {
      value.fail("", fmt::format("expected a device number from 0 to {}", result.devices() - 1));
    }
    result.device_speed[static_cast<std::size_t>(device)] = read_factor(value);
  }
}

void slow_down_links(const config_node& slow, network& net) {
  for (const auto& [key, value] : slow.entries()) {
    const auto factor = read_factor(value);
    const auto links = net.find_links(key);
    if (links.empty()) {
      const auto example = net.links().empty() ? "" : ", such as " + net.name(link_id{0}, "->");
      value.fail("", fmt::format("expected the name of a link{}", example));
    }
    for (const auto id : links) net.degrade(id, factor);
  }
}

/// Unless a question sets the key or a part of it.
void read_assumed(const config_node& root, const cluster_overrides& overrides, cluster& result) {
  for (const auto& [key, why] : root.at("assumed").entries()) {
    if (!root.has(key)) why.fail("", "expected a key of this file and why its value is assumed");
    const bool replaced =
        (key == "device" && !overrides.device.empty()) ||
        std::any_of(overrides.set.begin(), overrides.set.end(), [&key = key](const auto& s) {
          return s.first == key || s.first.starts_with(key + ".");
        });
    if (!replaced) result.assumed.push_back(fmt::format("{}: {}", key, why.as<std::string>()));
  }
}

}  // namespace

std::vector<std::string> cluster_keys() {
  std::set<std::string> all(std::begin(keys_of_nodes), std::end(keys_of_nodes));
  all.insert(std::begin(keys_of_graph), std::end(keys_of_graph));
  return {all.begin(), all.end()};
}

cluster read_cluster(config_node root, const cluster_overrides& overrides) {
  apply(overrides, root);
  cluster result;
  result.name = root.get<std::string>("name");
  root.has("graph") ? read_graph(root, result) : read_nodes(root, result);
  result.device = read_device(profile(root, "device", "devices", overrides));
  if (root.has("host")) result.host = read_host(profile(root, "host", "hosts", overrides));
  result.device_speed.assign(static_cast<std::size_t>(result.devices()), 1.0);
  if (root.has("assumed")) read_assumed(root, overrides, result);
  if (root.has("slow_devices")) slow_down_devices(root.at("slow_devices"), result);
  if (root.has("slow_links")) slow_down_links(root.at("slow_links"), result.network);
  return result;
}

cluster read_cluster(const std::string& name_or_file, const cluster_overrides& overrides) {
  std::string path;
  try {
    path = find_topology_file("clusters", name_or_file);
  } catch (const std::invalid_argument& e) {
    throw input_error("cluster", name_or_file, e.what());
  }
  return read_cluster(config_node::load(path), overrides);
}

device_profile read_device_file(const std::string& name_or_file) {
  return read_device(config_node::load(find_topology_file("devices", name_or_file)));
}

std::vector<std::string> shipped_clusters() {
  return shipped_names("clusters");
}
std::vector<std::string> shipped_devices() {
  return shipped_names("devices");
}
std::vector<std::string> shipped_hosts() {
  return shipped_names("hosts");
}

}  // namespace attnsim
