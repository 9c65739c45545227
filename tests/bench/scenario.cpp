// Our side of the comparison: simulates one scenario of scenario.hpp and prints a line of JSON.
// usage: scenario_ours ring|grid|all-to-all star|fat-tree|dragonfly HOSTS equal|unequal
//                      [LATENCY_US [unmerged]]
// An equal ring or grid does not compute, an unequal one does. Rings and grids go through
// simulate(), all-to-alls through the flow network.
#include "tests/bench/scenario.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>

#include "sim/flow_network.hpp"
#include "sim/joined_links.hpp"
#include "sim/simulator.hpp"
#include "tests/bench/clusters.hpp"
#include "tests/ring_exchanges.hpp"

namespace attnsim {
namespace {

struct result {
  double simulated_s = 0;
  double operations = 0;
};

result simulate_rings(const cluster& c, int rows, int cols, bool unequal, bool merge) {
  const int ranks = rows * cols;
  placed_schedule i(c, exchange_problem(ranks, scenario::ring_bytes),
                    {.tokens = token_layout::contiguous}, ring_exchanges(rows, cols, unequal));
  const auto& program = i.program().program;
  const auto operations_a_step =
      program.size() / static_cast<std::size_t>(std::max(rows, cols) - 1);
  if (unequal) {
    i.use_local_times([&](std::size_t op, int rank) {
      if (!is_kernel(program[op].kind)) return seconds();
      const auto step = static_cast<int>(op / operations_a_step);
      return seconds(scenario::compute_s * scenario::unequal(rank, step));
    });
  }
  const auto t = simulate(i, {.merge_symmetric = merge});
  return {t.duration().value(), static_cast<double>(program.size()) * ranks};
}

struct message {
  picoseconds start;
  double bytes;
  std::size_t route;
};

result simulate_all_to_all(const cluster& c, int hosts, bool unequal) {
  std::vector<double> capacities;
  for (const auto& l : c.network.links()) capacities.push_back(l.capacity.value());
  std::vector<message> messages;
  std::vector<std::vector<link_use>> routes;
  std::vector<link_id> path;
  for (int d = 1; d < hosts; ++d) {
    for (int i = 0; i < hosts; ++i) {
      path.clear();
      c.network.route(i, (i + d) % hosts, path);
      seconds latency;
      auto& route = routes.emplace_back();
      for (const auto l : path) {
        route.push_back({l});
        latency += c.network.links()[l].latency;
      }
      messages.push_back({to_picoseconds(latency.value()),
                          scenario::message_bytes_to(i, d, !unequal), routes.size() - 1});
    }
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const message& a, const message& b) { return a.start < b.start; });
  const auto joined = join_links(capacities, routes);
  flow_network network(joined.capacities);
  for (const auto& route : joined.routes) network.add_path(route);

  std::vector<flow_tag> done;
  picoseconds now = 0;
  for (std::size_t next = 0; next < messages.size() || network.flows() > 0;) {
    const auto start = next < messages.size() ? messages[next].start : never;
    now = std::min(start, network.next_completion());
    if (network.next_completion() == now) network.complete(now, done);
    for (; next < messages.size() && messages[next].start == now; ++next) {
      const auto& m = messages[next];
      network.start(now, next, static_cast<path_id>(m.route), m.bytes);
    }
  }
  return {to_seconds(now), static_cast<double>(messages.size())};
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void run(const std::string& traffic, const std::string& fabric, int hosts, bool unequal,
         double latency_us, bool merge) {
  const auto c = scenario_cluster(fabric, hosts, latency_us);
  const auto before = cpu_seconds();
  const int side = static_cast<int>(std::lround(std::sqrt(hosts)));
  const auto r = traffic == "all-to-all" ? simulate_all_to_all(c, hosts, unequal)
                 : traffic == "grid"     ? simulate_rings(c, side, side, unequal, merge)
                                         : simulate_rings(c, hosts, 1, unequal, merge);
  fmt::print(
      "{{\"simulated_s\": {:.12g}, \"run_s\": {:.6g}, \"operations\": {}, \"mib\": {:.1f}}}\n",
      r.simulated_s, cpu_seconds() - before, r.operations, peak_mebibytes());
}

}  // namespace
}  // namespace attnsim

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const double latency_us = argc > 5 ? std::stod(argv[5]) : scenario::link_latency_s * 1e6;
  attnsim::run(argv[1], argv[2], std::stoi(argv[3]), argv[4] == std::string("unequal"), latency_us,
               argc < 7);
}
