#include <fmt/format.h>

#include <map>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"

namespace attnsim::cli {
namespace {

void list() {
  fmt::print("clusters:\n");
  for (const auto& name : shipped_clusters()) fmt::print("  {}\n", name);
  fmt::print("devices:\n");
  for (const auto& name : shipped_devices()) fmt::print("  {}\n", name);
}

std::string count(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

void check_file(const cluster_flags& flags) {
  const auto c = flags.read();
  fmt::print("{}: {}, {}, all devices reach each other\n", c.name,
             count(static_cast<std::size_t>(c.devices()), "device"),
             count(c.network.links().size(), "link"));
}

/// Links by what they join, with count, bandwidth and latency.
std::string link_table(const network& net) {
  struct group {
    std::size_t links = 0;
    link sample;
  };
  std::map<std::string, group> groups;
  for (const auto& l : net.links()) {
    const auto& from = net.vertices()[l.from];
    const auto& to = net.vertices()[l.to];
    const auto tier = [](const vertex& v) {
      return v.label.empty() ? std::string(v.tier) : v.label;
    };
    auto& g = groups[fmt::format("{} -> {} {}", tier(from), tier(to), l.capacity.value())];
    ++g.links;
    g.sample = l;
  }
  text_table table({"from -> to", "links", "bandwidth", "latency", "kind"});
  for (const auto& [key, g] : groups) {
    table.add({key.substr(0, key.rfind(' ')), fmt::format("{}", g.links),
               to_string(g.sample.capacity), to_string(g.sample.latency),
               std::string(name_of(g.sample.kind))});
  }
  return table.str();
}

/// Hops and bottleneck bandwidth from device 0 to the others, each distinct kind of route once.
std::string route_table(const network& net) {
  std::map<std::string, std::pair<int, std::string>> kinds;
  std::vector<link_id> path;
  for (int to = 1; to < net.devices(); ++to) {
    path.clear();
    net.route(0, to, path);
    bandwidth slowest(1e30);
    seconds latency;
    for (const auto id : path) {
      slowest = std::min(slowest, net.links()[id].capacity);
      latency += net.links()[id].latency;
    }
    auto& [n, sample] =
        kinds[fmt::format("{} links|{}|{}", path.size(), to_string(slowest), to_string(latency))];
    if (n++ == 0) sample = net.name(net.device(to));
  }
  text_table table({"route from device 0", "to", "such as", "narrowest", "latency"});
  for (const auto& [key, value] : kinds) {
    const auto first = key.find('|'), second = key.rfind('|');
    table.add({key.substr(0, first), count(static_cast<std::size_t>(value.first), "device"),
               value.second, key.substr(first + 1, second - first - 1), key.substr(second + 1)});
  }
  return table.str();
}

void show(const cluster_flags& flags) {
  const auto c = flags.read();
  fmt::print("{}: {} x {}", c.name, c.devices(), c.device.name);
  if (c.devices_per_node > 0)
    fmt::print(" in {} of {}", count(static_cast<std::size_t>(c.nodes), "node"),
               c.devices_per_node);
  fmt::print("\n\n{}", link_table(c.network));
  if (c.devices() > 1) fmt::print("\n{}", route_table(c.network));
}

}  // namespace

void add_topology(CLI::App& app) {
  auto* topology = app.add_subcommand("topology", "clusters: list, show, check, import");
  topology->require_subcommand(1);
  topology->add_subcommand("list", "the shipped clusters and devices")->callback(list);
  const auto add = [&](const char* name, const char* help, void (*run)(const cluster_flags&)) {
    auto flags = std::make_shared<cluster_flags>();
    auto* command = topology->add_subcommand(name, help);
    flags->add_to(*command);
    command->callback([flags, run] { run(*flags); });
  };
  add_import(*topology);
  add("show", "links and routes of a cluster", show);
  add("check", "read a cluster and report the first mistake", check_file);
}

}  // namespace attnsim::cli
