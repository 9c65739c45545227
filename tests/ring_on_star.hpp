// One device a node on a switch, that computes in no time worth speaking of: only communication
// shows.
#pragma once

#include "model/cluster/cluster.hpp"
#include "model/config.hpp"

namespace attnsim {

inline cluster star(int nodes) {
  return read_cluster(config_node::parse_text(
      "name: star\n"
      "device: {name: instant, peak: {half: 1e9 PFLOP/s, fp32: 1e9 PFLOP/s}, "
      "memory: {capacity: 1 TB, bandwidth: 1e12 TB/s}, multiprocessors: 1}\n"
      "nodes: " +
          std::to_string(nodes) +
          "\ndevices_per_node: 1\nnode: {links: none}\n"
          "nics: {per_node: 1, bandwidth: 50 GB/s, latency: 1 us}\nfabric: {kind: star}\n",
      "star.yaml"));
}

/// K and V of one rank: 2 x 8 heads x 128 x 2 B x 16384 tokens = 64 MiB; 64 MiB / 50 GB/s =
/// 1.342177 ms, and 2 us for two links.
inline attention problem(int ranks) {
  return {.heads = 8,
          .kv_heads = 8,
          .head_dim = 128,
          .sequence = ranks * 16384,
          .mask = mask_kind::full};
}
inline constexpr double step_s = 1.344177e-3;

inline strategy ring(int ranks) {
  return {.schedule = "ring", .rows = ranks, .cols = 1, .tokens = token_layout::contiguous};
}

}  // namespace attnsim
