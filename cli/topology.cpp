#include "ask/bases.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/write_file.hpp"
#include "formats/drawing.hpp"
#include "formats/exports.hpp"
#include "formats/from_cluster.hpp"
#include "formats/warnings.hpp"
#include "model/schedule/framework_profile.hpp"

namespace attnsim::cli {
namespace {

void print_names() {
  fmt::print("clusters:\n");
  for (const auto& name : shipped_clusters()) fmt::print("  {}\n", name);
  fmt::print("devices:\n");
  for (const auto& name : shipped_devices()) fmt::print("  {}\n", name);
  fmt::print("hosts:\n");
  for (const auto& name : shipped_hosts()) fmt::print("  {}\n", name);
  fmt::print("frameworks:\n");
  for (const auto& name : shipped_frameworks()) fmt::print("  {}\n", name);
}

std::string count(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// On stderr, of its wiring.
void warn(const cluster& c, bool quiet) {
  if (quiet) return;
  for (const auto& line : formats::warnings_of(formats::from_cluster(c)))
    fmt::print(stderr, "warning: {}\n", line);
}

void check_file(const ask::question& q, bool quiet) {
  const auto c = ask::cluster_of(q);
  fmt::print("{}: {}, {}, all devices reach each other\n", c.name,
             count(static_cast<std::size_t>(c.devices()), "device"),
             count(c.network.links().size(), "link"));
  warn(c, quiet);
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

std::string basis_table(const cluster& c) {
  text_table table({"figures", "basis"});
  for (const auto& one : ask::bases_of(c)) table.add({one.figures, one.basis});
  return table.str();
}

void show(const ask::question& q, const std::string& svg, bool quiet) {
  check_files({{"--svg", svg}}, files_of(q));
  const auto c = ask::cluster_of(q);
  if (!svg.empty()) write_file("--svg", svg, formats::draw_svg(c));
  fmt::print("{}: {} x {}", c.name, c.devices(), c.device.name);
  if (c.devices_per_node > 0)
    fmt::print(" in {} of {}", count(static_cast<std::size_t>(c.nodes), "node"),
               c.devices_per_node);
  fmt::print("\n\n{}\n{}", formats::draw_matrix(c), link_table(c.network));
  if (c.devices() > 1) {
    const int half = c.devices() / 2;
    fmt::print("\n{}\nbisection bandwidth: {}, {} a device\n", route_table(c.network),
               to_string(formats::bisection(c)), to_string(formats::bisection(c) / half));
  }
  fmt::print("\n{}", basis_table(c));
  warn(c, quiet);
}

void export_file(const ask::question& q, const std::string& to, const std::string& out) {
  const auto& format = formats::find_export(to);
  check_files({{"--out", out}}, files_of(q));
  const auto text = format.write(ask::cluster_of(q));
  out.empty() ? fmt::print("{}", text) : write_file("--out", out, text);
}

}  // namespace

void add_topology(CLI::App& app) {
  auto* topology = app.add_subcommand("topology", "clusters: list, show, check, import, export");
  topology->require_subcommand(1);
  auto* names =
      topology->add_subcommand("list", "the shipped clusters, devices, hosts and frameworks");
  names->callback(print_names);
  auto q = std::make_shared<ask::question>();
  auto file = std::make_shared<std::string>(), to = std::make_shared<std::string>();
  auto quiet = std::make_shared<bool>(false);
  auto* check = topology->add_subcommand("check", "read a cluster and report the first mistake");
  add_cluster(*check, *q);
  check->callback([q, quiet] { check_file(*q, *quiet); });
  auto* draw = topology->add_subcommand("show", "matrix, links, routes and bisection of a cluster");
  add_cluster(*draw, *q);
  draw->add_option("--svg", *file, "also draw the network to this file");
  draw->callback([q, file, quiet] { show(*q, *file, *quiet); });
  add_import(*topology);
  auto* write = topology->add_subcommand("export", "a cluster as another program's file");
  add_cluster(*write, *q);
  std::string help = "one of:";
  for (const auto& f : formats::export_formats()) help += fmt::format("\n  {}: {}", f.name, f.what);
  write->add_option("--to", *to, help)->required();
  write->add_option("--out", *file, "write it here");
  write->callback([q, to, file] { export_file(*q, *to, *file); });
  for (auto* command : {names, check, draw, write}) add_quiet(*command, *quiet);
}

}  // namespace attnsim::cli
