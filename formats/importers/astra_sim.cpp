// ASTRA-sim's analytical network (YAML): dimensions of NPUs, the first the fastest varying, each a
// Ring, Switch or FullyConnected of `npus_count` NPUs; bandwidth of a link in GB/s each way, latency
// of a link in ns (a Switch is crossed by two). Dimensions of 100 GB/s or more are taken as NVLink
// inside a node. github.com/astra-sim/astra-network-analytical
#include <fmt/format.h>

#include <algorithm>

#include "formats/exports.hpp"
#include "formats/importers/table.hpp"
#include "model/config.hpp"
#include "model/named.hpp"

namespace attnsim::formats {
namespace {

enum class shape { ring, hub, all };
constexpr name_table<shape, 3> shapes{
    {{shape::ring, "Ring"}, {shape::hub, "Switch"}, {shape::all, "FullyConnected"}}};
constexpr std::int64_t most_npus = most_parts;
constexpr bandwidth least_nvlink(100e9);
constexpr std::size_t most_dimensions = 8;

struct dimension {
  shape how = shape::ring;
  std::int64_t npus = 1;
  bandwidth rate;
  seconds latency;

  link_kind kind() const { return rate >= least_nvlink ? link_kind::nvlink : link_kind::network; }
};

std::vector<dimension> read_dimensions(const config_node& root) {
  const auto topologies = root.at("topology").items();
  if (topologies.empty() || topologies.size() > most_dimensions) {
    root.fail("topology", fmt::format("expected 1 to {} dimensions", most_dimensions));
  }
  const auto list = [&](const char* key) {
    auto items = root.at(key).items();
    if (items.size() != topologies.size()) {
      root.fail(key, fmt::format("expected {} values, one a dimension", topologies.size()));
    }
    return items;
  };
  const auto counts = list("npus_count"), rates = list("bandwidth"), latencies = list("latency");
  std::vector<dimension> dimensions;
  std::int64_t npus = 1;
  for (std::size_t i = 0; i < topologies.size(); ++i) {
    dimension d;
    try {
      d.how = find_value(shapes, topologies[i].as<std::string>());
    } catch (const std::invalid_argument& e) {
      topologies[i].fail("", e.what());
    }
    d.npus = counts[i].as<std::int64_t>();
    if (d.npus < 1 || d.npus > most_npus / npus) {
      counts[i].fail("", fmt::format("expected at least 1 and at most {} NPUs in all", most_npus));
    }
    npus *= d.npus;
    const auto rate = rates[i].as<double>(), latency = latencies[i].as<double>();
    if (rate <= 0 || rate > 1e6) rates[i].fail("", "expected GB/s above 0 and at most 1000000");
    if (latency < 0 || latency > 1e9) latencies[i].fail("", "expected ns from 0 to 1000000000");
    d.rate = bandwidth(rate * 1e9);
    d.latency = seconds(latency * 1e-9);
    dimensions.push_back(d);
  }
  return dimensions;
}

/// The links of one dimension for one position in the others.
void join(topology& t, const dimension& d, const std::vector<std::size_t>& members,
          const std::string& hub_name, int node) {
  const auto n = members.size();
  const auto link = [&](std::size_t a, std::size_t b) {
    t.join(a, b, d.rate, d.latency, d.kind());
  };
  if (n < 2) return;
  switch (d.how) {
    case shape::ring:
      for (std::size_t i = 0; i < (n == 2 ? 1 : n); ++i) link(members[i], members[(i + 1) % n]);
      return;
    case shape::hub: {
      const auto hub = t.add(part_kind::switch_, hub_name, node);
      for (const auto m : members) link(m, hub);
      return;
    }
    case shape::all:
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = a + 1; b < n; ++b) link(members[a], members[b]);
      }
  }
}

topology read_astra_sim(const source& from, const settings& given) {
  const auto root = config_node::parse_text(from.text, from.name);
  root.allow_only({"topology", "npus_count", "bandwidth", "latency"});
  const auto dimensions = read_dimensions(root);
  std::size_t npus = 1, in_node = 1;
  bool inside = true;
  for (const auto& d : dimensions) {
    npus *= static_cast<std::size_t>(d.npus);
    inside = inside && d.kind() == link_kind::nvlink;
    if (inside) in_node = npus;
  }
  topology t{.what = scope::cluster, .device = given.device};
  for (std::size_t i = 0; i < npus; ++i) {
    t.add(part_kind::device, fmt::format("npu{}", i), static_cast<int>(i / in_node));
  }
  std::size_t stride = 1, hubs = 0;
  for (const auto& d : dimensions) {
    const auto n = static_cast<std::size_t>(d.npus);
    for (std::size_t first = 0; first < npus; ++first) {
      if (first / stride % n != 0) continue;
      std::vector<std::size_t> members;
      for (std::size_t i = 0; i < n; ++i) members.push_back(first + i * stride);
      const bool within = stride * n <= in_node;
      join(t, d, members, fmt::format("switch{}", hubs++), within ? t.parts[first].node : -1);
    }
    stride *= n;
  }
  t.said.read = {
      fmt::format("{}, {}", counted(npus, "NPU"), counted(dimensions.size(), "dimension"))};
  if (in_node > 1) {
    t.said.assumed = {fmt::format("dimensions of {} or more are NVLink: nodes of {}",
                                  to_string(least_nvlink), in_node)};
  }
  t.said.missing = {"the NPUs' kind: --device"};
  return t;
}

}  // namespace

const importer importers::astra_sim{
    .name = "astra-sim",
    .what = "ASTRA-sim analytical network YAML",
    .reads = "dimensions (Ring, Switch, FullyConnected) with sizes, GB/s and ns",
    .assumes = "dimensions of 100 GB/s or more are NVLink inside a node; the NPUs' kind",
    .refuses = "unknown keys or shapes, other numbers of values than of dimensions",
    .recognises = [](std::string_view text) { return has_key(text, "npus_count:"); },
    .read = read_astra_sim,
};

namespace {

/// The route from device 0 to another.
struct first_route {
  std::size_t links = 0;
  bandwidth rate;
  seconds latency;
};

first_route route_to(const network& net, int device) {
  std::vector<link_id> path;
  net.route(0, device, path);
  first_route w{.links = path.size(), .rate = net.links()[path.front()].capacity};
  for (const auto id : path) {
    w.rate = std::min(w.rate, net.links()[id].capacity);
    w.latency += net.links()[id].latency;
  }
  return w;
}

/// The devices from `first` in steps of `stride` as one dimension; the longest of their latencies.
dimension dimension_of(const cluster& c, int first, int stride, int end) {
  auto longest = route_to(c.network, first);
  bool direct = true;
  for (int d = first; d < end; d += stride) {
    const auto w = route_to(c.network, d);
    if (w.rate != longest.rate) {
      throw input_error(fmt::format(
          "{}: an ASTRA-sim file has one rate a dimension, but {} reaches {} at {} and {} at {}",
          c.name, c.network.name(c.network.device(0)), c.network.name(c.network.device(first)),
          to_string(longest.rate), c.network.name(c.network.device(d)), to_string(w.rate)));
    }
    direct = direct && w.links == 1;
    longest.latency = std::max(longest.latency, w.latency);
  }
  const int npus = 1 + (end - first + stride - 1) / stride;
  if (direct) return {shape::all, npus, longest.rate, longest.latency};
  return {shape::hub, npus, longest.rate, longest.latency / 2};
}

}  // namespace

std::string write_astra_sim(const cluster& c) {
  int in_node = 0;
  while (in_node < c.devices() && c.network.node_of(in_node) == c.network.node_of(0)) ++in_node;
  for (int d = 0; d < c.devices(); ++d) {
    if (c.network.node_of(d) - c.network.node_of(0) != d / in_node) {
      throw input_error(fmt::format("{}: an ASTRA-sim file has equal nodes, but {} starts no node",
                                    c.name, c.network.name(c.network.device(d))));
    }
  }
  std::vector<dimension> dimensions;
  if (in_node > 1) dimensions.push_back(dimension_of(c, 1, 1, in_node));
  if (in_node < c.devices()) dimensions.push_back(dimension_of(c, in_node, in_node, c.devices()));
  if (dimensions.empty()) throw input_error(c.name + ": one device has no network to write");
  const auto list = [&](auto value_of) {
    std::string items;
    for (const auto& d : dimensions) {
      items += fmt::format("{}{}", items.empty() ? "" : ", ", value_of(d));
    }
    return items;
  };
  return fmt::format(
      "# {}\ntopology: [ {} ]\nnpus_count: [ {} ]\nbandwidth: [ {} ]  # GB/s\n"
      "latency: [ {} ]  # ns\n",
      c.name, list([](const auto& d) { return find_name(shapes, d.how); }),
      list([](const auto& d) { return d.npus; }),
      list([](const auto& d) { return fmt::format("{:.10g}", d.rate.value() / 1e9); }),
      list([](const auto& d) { return fmt::format("{:.10g}", d.latency.value() * 1e9); }));
}

}  // namespace attnsim::formats
