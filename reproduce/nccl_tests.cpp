// nccl-tests: the bus bandwidth of a collective, the fastest of NCCL's algorithms; plateaus and mid-size messages.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/cost/collective.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

struct operation_form {
  std::string_view name;
  collective_kind kind;
  std::vector<collective_algorithm> algorithms;
  double traffic;  ///< of the bus, times (n - 1) / n of the bytes: nccl-tests' PERFORMANCE.md
};

const operation_form forms[] = {
    {"all-gather", collective_kind::all_gather, {collective_algorithm::ring}, 1},
    {"reduce-scatter", collective_kind::reduce_scatter, {collective_algorithm::ring}, 1},
    {"all-reduce",
     collective_kind::all_reduce,
     {collective_algorithm::ring, collective_algorithm::tree},
     2},
};

std::vector<int> first_devices(int n) {
  std::vector<int> devices(static_cast<std::size_t>(n));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

/// Every rank sends to the next.
seconds send_receive(const cluster& c, double bytes) {
  const auto& t = c.device.transport(link_kind::nvlink);
  std::vector<link_id> path;
  c.network.route(0, 1, path);
  seconds latency = t.latency;
  auto narrowest = c.network.links()[path.front()].capacity;
  for (const auto id : path) {
    latency += c.network.links()[id].latency;
    narrowest = std::min(narrowest, c.network.links()[id].capacity);
  }
  return latency + seconds(bytes / (narrowest.value() * t.efficiency));
}

double bus_bandwidth(const cluster& c, std::string_view operation, int ranks, double bytes) {
  if (operation == "sendrecv") return bytes / send_receive(c, bytes).value();
  const auto& form = *std::find_if(std::begin(forms), std::end(forms),
                                   [&](const auto& f) { return f.name == operation; });
  double fastest = 0;
  for (const auto algorithm : form.algorithms) {
    const auto time = time_alone(c, stages(c, {form.kind, algorithm}, first_devices(ranks), bytes));
    fastest = std::max(fastest, form.traffic * bytes * (ranks - 1) / ranks / time.value());
  }
  return fastest;
}

/// `fitted_series`: of the figures that something was read off. `sized`: figures are named with their size.
result bus_bandwidths(const std::string& table, const std::string& fitted_series, bool sized) {
  result r{.unit = "GB/s of bus bandwidth"};
  for (const auto& row : published(table)) {
    const bool fitted = row.text("fitted") == "true";
    const auto c = cluster_of(row);
    const auto size = sized ? " of " + to_string(byte_count(row.integer("bytes"))) : "";
    r.points.push_back({fitted ? fitted_series : row.text_or("series", "predicted"),
                        fmt::format("{} {}{}", row.text("machine"), row.text("operation"), size),
                        row.number("gbytes_per_s"),
                        bus_bandwidth(c, row.text("operation"),
                                      static_cast<int>(row.integer("ranks")), row.number("bytes")) /
                            1e9,
                        fitted});
  }
  r.assumptions = {
      "all-reduce takes the faster of ring and tree; reduction in the switch (NVLS) is not "
      "modelled"};
  return r;
}

}  // namespace

result nccl_tests() {
  return bus_bandwidths("nccl-tests", "efficiencies read off", false);
}

result nccl_mid_sizes() {
  return bus_bandwidths("nccl-mid-sizes", "ramps read off", true);
}

}  // namespace attnsim::reproduce
