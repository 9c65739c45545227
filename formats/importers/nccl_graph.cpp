// NCCL's graph XML (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE): the channels that its search found over
// the GPUs of a node, each carrying speedintra GB/s. Read is the ring (pattern 4; else the first
// graph): the rate from one GPU to the next is the number of channels that take this way times
// speedintra. Grammar: github.com/NVIDIA/nccl src/graph/search.cc.
#include <fmt/format.h>

#include <map>
#include <set>

#include "formats/hardware.hpp"
#include "formats/importers/table.hpp"
#include "formats/xml.hpp"

namespace attnsim::formats {
namespace {

constexpr int ring_pattern = 4, most_devices = 4096;
constexpr double most_rate = 1e5;  ///< GB/s

struct channel {
  std::vector<int> gpus, nets;
};

channel read_channel(const xml_file& xml, pugi::xml_node e) {
  channel c;
  for (const auto gpu : e.children("gpu"))
    c.gpus.push_back(xml.integer(gpu, "dev", 0, most_devices));
  for (const auto net : e.children("net"))
    c.nets.push_back(xml.integer(net, "dev", 0, most_devices));
  if (c.gpus.empty()) xml.fail(e, "<channel>: expected at least one <gpu>");
  return c;
}

pugi::xml_node find_ring(const xml_file& xml) {
  for (const auto graph : xml.root().children("graph")) {
    if (xml.integer(graph, "pattern", 0, 16) == ring_pattern) return graph;
  }
  const auto first = xml.root().child("graph");
  if (!first) xml.fail(xml.root(), "expected at least one <graph>");
  return first;
}

topology read_nccl_graph(const source& from, const settings& given) {
  const xml_file xml(from, "graphs");
  const auto& known = known_hardware();
  const auto graph = find_ring(xml);
  const bandwidth rate(xml.number(graph, "speedintra", 0.001, most_rate) * 1e9);
  const auto type = xml.text(graph, "typeintra");
  const bool nvlink = type == "NVL" || type == "NVB" || type == "C2C";

  std::vector<channel> channels;
  for (const auto e : graph.children("channel")) channels.push_back(read_channel(xml, e));
  if (channels.empty()) xml.fail(graph, "<graph>: expected at least one <channel>");

  topology result{.what = scope::node, .device = given.device};
  std::map<int, std::size_t> gpus, nics;
  std::set<int> gpu_numbers, net_numbers;
  for (const auto& c : channels) {
    gpu_numbers.insert(c.gpus.begin(), c.gpus.end());
    net_numbers.insert(c.nets.begin(), c.nets.end());
  }
  for (const int n : gpu_numbers)
    gpus[n] = result.add(part_kind::device, fmt::format("gpu{}", n), 0);
  for (const int n : net_numbers) nics[n] = result.add(part_kind::nic, fmt::format("nic{}", n), 0);

  std::map<std::pair<std::size_t, std::size_t>, int> hops, to_nics;
  for (const auto& c : channels) {
    for (std::size_t i = 0; i < c.gpus.size() && c.gpus.size() > 1; ++i) {
      ++hops[{gpus[c.gpus[i]], gpus[c.gpus[(i + 1) % c.gpus.size()]]}];
    }
    if (c.nets.empty()) continue;
    ++to_nics[{gpus[c.gpus.front()], nics[c.nets.front()]}];
    if (c.nets.back() != c.nets.front() || c.gpus.back() != c.gpus.front())
      ++to_nics[{gpus[c.gpus.back()], nics[c.nets.back()]}];
  }
  for (const auto& [ends, count] : hops) {
    result.join(ends.first, ends.second, rate * count,
                nvlink ? known.nvlink_latency : 2 * known.pcie_latency,
                nvlink ? link_kind::nvlink : link_kind::pcie, false);
  }
  if (!nics.empty()) {
    const bandwidth between(xml.number(graph, "speedinter", 0.001, most_rate) * 1e9);
    result.nic_rate = given.nic_rate > bandwidth{} ? given.nic_rate : between;
    for (const auto& [ends, count] : to_nics) {
      result.join(ends.first, ends.second, between * count, known.pcie_latency, link_kind::pcie);
    }
  }
  result.said.read = {fmt::format("{}, {}, {} of {} on {} paths", counted(gpus.size(), "GPU"),
                                  counted(nics.size(), "NIC"), counted(channels.size(), "channel"),
                                  to_string(rate), type)};
  result.said.assumed = {
      "the rate between two GPUs is that of the channels which NCCL's search laid there, which is "
      "at most what the links carry"};
  result.said.missing = {"links that NCCL's search did not use; the GPUs' kind: --device"};
  return result;
}

}  // namespace

const importer importers::nccl_graph{
    .name = "nccl-graph",
    .what = "NCCL graph XML: NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE",
    .reads = "the ring: which GPUs follow each other, channels, GB/s of each, NICs",
    .assumes = "latencies; the card's kind",
    .refuses = "no graph, no channels",
    .recognises = [](std::string_view text) { return xml_root_name(text) == "graphs"; },
    .read = read_nccl_graph,
};

}  // namespace attnsim::formats
