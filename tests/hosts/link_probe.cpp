#include "tests/hosts/link_probe.hpp"

#include <fmt/format.h>

#include <numeric>
#include <sstream>
#include <stdexcept>

#include "tests/hosts/launch.hpp"

namespace attnsim::hosts {
namespace {

void add_kinds(std::vector<link_kind>& kinds, const std::string& place, std::pair<int, int> hosts,
               int rails) {
  if (rails == 1) return kinds.push_back({place, hosts, {0}});
  std::vector<int> all(static_cast<std::size_t>(rails));
  std::iota(all.begin(), all.end(), 0);
  for (const int rail : all)
    kinds.push_back({fmt::format("{} rail{}", place, rail), hosts, {rail}});
  kinds.push_back({place + " all rails", hosts, all});
}

/// Lines "one-way|both-ways BYTES SECONDS".
void read_transfers(link_measurement& measurement, const std::string& output) {
  std::istringstream lines(output);
  std::string way;
  std::int64_t size;
  double time;
  while (lines >> way >> size >> time)
    (way == "one-way" ? measurement.one_way : measurement.both_ways)
        .push_back({byte_count(size), seconds(time)});
}

link_measurement measure(const emulated_hosts& hosts, const std::string& probe,
                         const link_kind& kind) {
  const auto run = launch(hosts, {.program = probe,
                                  .hosts = {kind.hosts.first, kind.hosts.second},
                                  .rails = kind.rails,
                                  .time_out = std::chrono::seconds(120)});
  if (run.status != 0)
    throw std::runtime_error(fmt::format("link probe, {}: {}", kind.name, run.failure()));
  link_measurement measurement{.kind = kind};
  read_transfers(measurement, run.output);
  measurement.one_way_fit = fit_link(measurement.one_way);
  measurement.both_ways_fit = fit_link(measurement.both_ways);
  return measurement;
}

}  // namespace

std::vector<link_kind> link_kinds(const host_network& network) {
  std::vector<link_kind> kinds;
  const int per_leaf = network.hosts_per_leaf ? network.hosts_per_leaf : network.hosts;
  if (per_leaf > 1 && network.hosts > 1) add_kinds(kinds, "leaf", {0, 1}, network.rails);
  if (per_leaf < network.hosts) add_kinds(kinds, "core", {0, per_leaf}, network.rails);
  return kinds;
}

std::vector<link_measurement> measure_links(const emulated_hosts& hosts, const std::string& probe,
                                            std::vector<link_kind> kinds) {
  if (kinds.empty()) kinds = link_kinds(hosts.network());
  std::vector<link_measurement> measurements;
  for (const auto& kind : kinds) measurements.push_back(measure(hosts, probe, kind));
  return measurements;
}

}  // namespace attnsim::hosts
