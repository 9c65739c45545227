// Mesh-Attention's abstract: traffic and speed against Ring Attention on 256 GPUs. Models, sequence lengths and machine
// are unknown. Traffic follows from tile, number format and query heads a K/V head alone. For the speed the NICs'
// bandwidth is fitted on a figure of 128 GPUs: Ring waits 91.5 % of its time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ask/predict.hpp"
#include "reproduce/published.hpp"
#include "reproduce/solve.hpp"
#include "reproduce/studies.hpp"
#include "sim/parallel.hpp"

namespace attnsim::reproduce {
namespace {

constexpr int mesh_gpus = 256;
constexpr std::int64_t tokens = 1 << 20;
constexpr std::int64_t heads = 32;
constexpr double published_waiting = 0.915;

struct mesh_machine {
  int nics = 4;           ///< of a node of 8
  double bandwidth = 10;  ///< GB/s of one
};

struct tile {
  int rows = 32, cols = 8;  ///< R x C: 8 query chunks, 32 key chunks
};

struct formats {
  precision partials = precision::fp32, gradients = precision::fp32;
};

cluster mesh_cluster(const mesh_machine& m, int ranks) {
  cluster_overrides o{.nodes = ranks / 8};
  o.set = {{"nics.per_node", std::to_string(m.nics)},
           {"nics.bandwidth", fmt::format("{} GB/s", m.bandwidth)}};
  return read_cluster(find_published("mesh.yaml"), o);
}

prediction ask(const mesh_machine& m, int ranks, std::int64_t group, strategy s, formats f,
               pass_kind pass = pass_kind::both,
               prediction_method by = prediction_method::simulation) {
  s.tokens = token_layout::striped;
  s.partials = f.partials;
  s.gradients = f.gradients;
  const attention a{.heads = heads, .kv_heads = heads / group, .sequence = tokens};
  return predict(mesh_cluster(m, ranks), a, s, ranks, pass, by);
}

strategy mesh_on(const tile& t) {
  return {.schedule = "mesh", .rows = t.rows, .cols = t.cols};
}

/// One configuration: query heads a K/V head, with what both schedules take.
struct configuration {
  std::int64_t group = 1;
  prediction ring, mesh;

  double traffic_saved() const {
    return 1 - static_cast<double>(mesh.most_bytes_sent.value()) /
                   static_cast<double>(ring.most_bytes_sent.value());
  }
  double speedup() const { return ring.time / mesh.time; }
  double waiting_saved() const {
    return 1 - mesh.exposed_communication / ring.exposed_communication;
  }
};

std::vector<configuration> compare(const mesh_machine& m, const tile& t, formats f,
                                   pass_kind pass = pass_kind::both,
                                   prediction_method by = prediction_method::simulation) {
  std::vector<configuration> all{{1}, {2}, {4}, {8}};
  parallel_for_each(all, [&](configuration& c) {
    c.ring = ask(m, mesh_gpus, c.group, {.schedule = "ring"}, f, pass, by);
    c.mesh = ask(m, mesh_gpus, c.group, mesh_on(t), f, pass, by);
  });
  return all;
}

template <typename Value>
std::pair<double, double> most_and_mean(const std::vector<configuration>& all, Value value) {
  double most = 0, sum = 0;
  for (const auto& c : all) {
    most = std::max(most, (c.*value)());
    sum += (c.*value)();
  }
  return {most, sum / static_cast<double>(all.size())};
}

/// The bandwidth at which Ring waits as long as published. The faster the NICs, the less it waits.
mesh_machine fit_waiting(mesh_machine m) {
  m.bandwidth = solve_falling(
      [&](double bandwidth) {
        m.bandwidth = bandwidth;
        const auto ring = ask(m, 128, 1, {.schedule = "ring"}, {});
        return ring.exposed_communication / ring.time - published_waiting;
      },
      1, 100);
  return m;
}

void add_tiles(result& r) {
  struct variant {
    std::string name;
    formats used;
    pass_kind pass;
  };
  const variant variants[] = {
      {"bf16, forward", {precision::storage, precision::storage}, pass_kind::forward},
      {"bf16, both passes", {precision::storage, precision::storage}, pass_kind::both},
      {"fp32 gradients, both passes", {precision::storage, precision::fp32}, pass_kind::both},
      {"fp32 partial outputs and gradients, both passes", {}, pass_kind::both},
  };
  for (const tile& t : {tile{64, 4}, tile{32, 8}, tile{16, 16}, tile{8, 32}}) {
    for (const auto& v : variants) {
      const auto all = compare({}, t, v.used, v.pass, prediction_method::analytic);
      const auto [most, mean] = most_and_mean(all, &configuration::traffic_saved);
      const auto name = fmt::format("tile {}x{}, {}", t.cols, t.rows, v.name);
      r.what_ifs.push_back({name, "traffic saved, largest", 0.854, most});
      r.what_ifs.push_back({name, "traffic saved, mean", 0.79, mean});
    }
  }
}

}  // namespace

result mesh() {
  const auto m = fit_waiting({});
  const auto all = compare(m, {}, {});
  const auto [most_saved, mean_saved] = most_and_mean(all, &configuration::traffic_saved);
  const auto [most_speedup, mean_speedup] = most_and_mean(all, &configuration::speedup);
  const auto ring_128 = ask(m, 128, 1, {.schedule = "ring"}, {});

  result r{.unit = "shares, and times Ring Attention's speed"};
  r.points = {
      {"traffic", "traffic saved on 256 GPUs, largest", 0.854, most_saved},
      {"traffic", "traffic saved on 256 GPUs, mean", 0.79, mean_saved},
      {"speed", "speedup on 256 GPUs, largest", 3.4, most_speedup},
      {"speed", "speedup on 256 GPUs, mean", 2.9, mean_speedup},
      {"waiting", "share of its time that ring waits, 128 GPUs, 1M tokens", published_waiting,
       ring_128.exposed_communication / ring_128.time, true},
  };
  r.assumptions = {
      "configurations: 1, 2, 4 and 8 query heads a K/V head, 32 heads of 128, 1M tokens, causal, "
      "striped, both passes",
      "tile of 8 query and 32 key chunks: a node of 8 GPUs shares its queries; partial outputs and "
      "gradients in fp32",
      "nodes of 8 H100 that share 4 NICs (the number that fits; others below)",
  };
  r.fitted = {fmt::format("bandwidth of a NIC: {:.1f} GB/s, on the waiting share at 128 GPUs",
                          m.bandwidth)};
  for (const auto& c : all) {
    const auto name = fmt::format("query heads of a K/V head: {}", c.group);
    r.what_ifs.push_back({name, "traffic saved", 0, c.traffic_saved()});
    r.what_ifs.push_back({name, "speedup", 0, c.speedup()});
    r.what_ifs.push_back({name, "waiting saved (a review: up to 0.749)", 0.749, c.waiting_saved()});
  }
  for (const int nics : {1, 2, 8}) {
    const auto [most, mean] =
        most_and_mean(compare({nics, m.bandwidth}, {}, {}), &configuration::speedup);
    const auto name = fmt::format("NICs of a node: {}, as fast", nics);
    r.what_ifs.push_back({name, "speedup, largest", 3.4, most});
    r.what_ifs.push_back({name, "speedup, mean", 2.9, mean});
  }
  add_tiles(r);
  return r;
}

}  // namespace attnsim::reproduce
