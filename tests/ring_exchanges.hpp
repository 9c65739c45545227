// A schedule of plain exchanges for tests and benchmarks: every step sends a block to the next rank
// along one or two axes of the grid while it computes, and the next step waits for all of it.
#pragma once

#include <algorithm>

#include "model/schedule/schedule.hpp"

namespace attnsim {

/// `rows` x `cols` ranks; along an axis of extent 1 nothing is sent. max(rows, cols) - 1 steps.
inline schedule ring_exchanges(int rows, int cols, bool compute) {
  schedule s{.name = "ring-exchanges", .grid = rank_grid({rows, cols}), .streams = {"compute"}};
  const auto add_tensor = [&](tensor what) {
    s.buffers.push_back({.what = what, .resident = true});
    return operand{.buffer = static_cast<int>(s.buffers.size()) - 1, .what = what, .at = {}};
  };
  const auto q = add_tensor(tensor::q), k = add_tensor(tensor::k), v = add_tensor(tensor::v);
  const auto o = add_tensor(tensor::o), lse = add_tensor(tensor::lse);
  std::vector<int> axes;
  if (rows > 1) axes.push_back(0);
  if (cols > 1) axes.push_back(1);
  for (const int axis : axes) s.streams.push_back(axis == 0 ? "columns" : "rows");

  const auto steps = static_cast<std::uint32_t>(std::max(rows, cols) - 1);
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::vector<std::uint32_t> needs(s.streams.size(), step);
    if (!compute) needs[0] = 0;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      s.program.push_back({.kind = op_kind::shift,
                           .stream = static_cast<int>(a) + 1,
                           .axes = only(axes[a]),
                           .distance = 1,
                           .reads = {k},
                           .writes = {k},
                           .needs = needs});
    }
    if (!compute) continue;
    s.program.push_back({.kind = op_kind::attention,
                         .stream = 0,
                         .reads = {q, k, v},
                         .writes = {o, lse},
                         .needs = needs});
  }
  return s;
}

/// A problem whose key block is `bytes` on every rank.
inline attention exchange_problem(int ranks, double bytes) {
  constexpr int head_dim = 128, element = 2;
  return {.heads = 1,
          .kv_heads = 1,
          .head_dim = head_dim,
          .sequence = static_cast<std::int64_t>(bytes) / (head_dim * element) * ranks,
          .mask = mask_kind::full};
}

}  // namespace attnsim
