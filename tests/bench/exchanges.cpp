#include "tests/bench/exchanges.hpp"

#include <algorithm>

namespace attnsim {
namespace {

constexpr int kernel_stream = 0;

operand whole(int buffer, tensor what) {
  return {.buffer = buffer, .slots = 1, .what = what, .at = {}};
}

}  // namespace

schedule ring_exchanges(int rows, int cols, bool compute) {
  schedule s{.name = "ring-exchanges", .grid = rank_grid({rows, cols}), .streams = {"compute"}};
  for (const auto t : {tensor::q, tensor::k, tensor::v, tensor::o, tensor::lse}) {
    s.buffers.push_back({.what = t, .resident = true});
  }
  const operands inputs{whole(0, tensor::q), whole(1, tensor::k), whole(2, tensor::v)};
  const operands outputs{whole(3, tensor::o), whole(4, tensor::lse)};
  std::vector<int> axes;
  if (rows > 1) axes.push_back(0);
  if (cols > 1) axes.push_back(1);
  for (const int axis : axes) s.streams.push_back(axis == 0 ? "column" : "row");

  const auto steps = static_cast<std::uint32_t>(std::max(rows, cols) - 1);
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::vector<std::uint32_t> needs(s.streams.size(), step);
    if (!compute) needs[kernel_stream] = 0;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      s.program.push_back({.kind = op_kind::shift,
                           .stream = static_cast<int>(a) + 1,
                           .axes = only(axes[a]),
                           .distance = 1,
                           .reads = {whole(1, tensor::k)},
                           .writes = {whole(1, tensor::k)},
                           .needs = needs});
    }
    if (!compute) continue;
    s.program.push_back({.kind = op_kind::attention,
                         .stream = kernel_stream,
                         .reads = inputs,
                         .writes = outputs,
                         .needs = needs});
  }
  return s;
}

attention exchange_problem(int ranks, double bytes) {
  constexpr int head_dim = 128, element = 2;
  const auto tokens = static_cast<std::int64_t>(bytes) / (head_dim * element);
  return {.heads = 1,
          .kv_heads = 1,
          .head_dim = head_dim,
          .sequence = tokens * ranks,
          .mask = mask_kind::full};
}

}  // namespace attnsim
