// htsim's fat trees (.topo): Nodes, Tiers, Podsize, then a section a tier with Downlink_speed_Gbps,
// Downlink_Latency_ns, Radix_Down, Radix_Up (but the highest) and Bundle, the cables to each switch
// below. github.com/Broadcom/csg-htsim sim/datacenter/topologies
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/fat_tree.hpp"
#include "formats/importers/table.hpp"

namespace attnsim::formats {
namespace {

constexpr int most = most_parts;

struct tier {
  std::size_t line = 0;
  std::map<std::string, int> values;
};

topology read_htsim(const source& from, const settings& given) {
  std::map<std::string, int> head;
  std::vector<tier> tiers;
  std::size_t last_line = 1;
  for (const auto& line : lines_of(from.text, '#')) {
    const auto words = words_of(line.text);
    const int value = words.size() == 2 ? to_number<int>(words[1]).value_or(-1) : -1;
    const std::string key(words[0]);
    if (value < 0 || value > most) {
      fail_at(from, line.number, key, words.size() > 1 ? words[1] : "",
              fmt::format("expected a whole number from 0 to {}", most));
    }
    last_line = line.number;
    if (key == "Tier") {
      if (value != static_cast<int>(tiers.size())) {
        fail_at(from, line.number, key, words[1], fmt::format("expected {}", tiers.size()));
      }
      tiers.push_back({line.number, {}});
    } else {
      (tiers.empty() ? head : tiers.back().values)[key] = value;
    }
  }
  const auto find = [&](const tier& t, const std::string& key) {
    const auto found = t.values.find(key);
    if (found == t.values.end() || found->second == 0) {
      fail_at(from, t.line, fmt::format("Tier: {}: missing", key));
    }
    return static_cast<std::size_t>(found->second);
  };
  if (tiers.empty()) fail_at(from, last_line, "expected at least one Tier");
  const auto nodes = static_cast<std::size_t>(head["Nodes"]);
  std::vector<fat_tree_level> levels;
  std::size_t product = 1;
  for (std::size_t l = 0; l < tiers.size(); ++l) {
    const auto bundle = tiers[l].values.contains("Bundle") ? find(tiers[l], "Bundle") : 1;
    const auto down = find(tiers[l], "Radix_Down");
    const auto up = l == 0 ? bundle : find(tiers[l - 1], "Radix_Up");
    if (down % bundle != 0 || up % bundle != 0) {
      fail_at(from, tiers[l].line, "Tier: Bundle: expected a divisor of the ports it joins");
    }
    const auto gigabits = static_cast<double>(find(tiers[l], "Downlink_speed_Gbps"));
    const auto latency = tiers[l].values["Downlink_Latency_ns"];
    levels.push_back({down / bundle, up / bundle, bundle, bandwidth(gigabits * 1e9 / 8),
                      seconds(latency * 1e-9)});
    product = std::min<std::size_t>(product * levels.back().down, most + 1);
  }
  if (product != nodes) {
    fail_at(from, 1,
            fmt::format("Nodes: '{}': expected {}, as the tiers' ports make", nodes, product));
  }
  topology t{.what = scope::cluster, .device = given.device};
  std::vector<std::size_t> hosts;
  for (std::size_t i = 0; i < nodes; ++i) {
    hosts.push_back(t.add(part_kind::device, fmt::format("host{}", i), static_cast<int>(i)));
  }
  add_fat_tree(t, hosts, levels);
  t.said.read = {fmt::format("{}, {}, {}", counted(nodes, "host"),
                             counted(t.count(part_kind::switch_), "switch"),
                             counted(t.cables.size(), "cable"))};
  t.said.assumed = {"a host is a device and a node of its own"};
  t.said.missing = {"the devices' kind: --device"};
  return t;
}

}  // namespace

const importer importers::htsim{
    .name = "htsim",
    .what = "htsim fat tree",
    .reads = "tiers with radix, bundles, speeds and latencies",
    .assumes = "a host is a device and a node of its own; the devices' kind",
    .refuses = "tiers whose ports do not make the number of nodes",
    .recognises = [](std::string_view text) { return has_key(text, "Tiers "); },
    .read = read_htsim,
};

}  // namespace attnsim::formats
