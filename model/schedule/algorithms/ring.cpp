// Ring Attention (arXiv 2310.01889): queries stay, K and V travel round all ranks. Its forward pass is Mesh-Attention's
// with one query chunk a tile. Backward, dK and dV travel along with K and V and make one hop more, home to their rank
// (zhuzilin/ring-flash-attention): P hops, 2 kv (P - 1) + 2 kv E P bytes.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule ring_backward(const strategy& s) {
  schedule_builder b("ring", rank_grid({s.rows, 1}), pass_kind::backward);
  const int keys = b.stream("keys"), gradients = b.stream("gradients");
  const int ranks = s.rows;
  const auto queries = b.own({tensor::q, tensor::d_o, tensor::lse});
  const auto o = b.own({tensor::o});
  auto kv = b.own({tensor::k, tensor::v});
  const auto result = b.own({tensor::d_q, tensor::d_k, tensor::d_v});
  const auto delta = b.chunk({tensor::delta}, {});
  const auto d_q = b.chunk({tensor::d_q}, {}, precision::fp32);
  b.add(op_kind::delta, 0, o + operands{find(queries, tensor::d_o)}, delta);

  operands incoming;
  for (int step = 0; step < ranks; ++step) {
    const auto here = at(step, 0), next = at(step + 1, 0);
    const auto block = kv;
    if (step + 1 < ranks) {
      kv = b.chunk({tensor::k, tensor::v}, next);
      b.add(op_kind::shift, keys, block, kv, only(along_column), -1);
    }
    auto gradient = b.chunk({tensor::d_k, tensor::d_v}, here, s.gradients);
    const auto accumulator = step == 0 ? operands{} : d_q;
    b.add(op_kind::attention_backward, 0, queries + delta + block + accumulator, d_q + gradient);
    if (step > 0) {
      const auto sum = b.chunk({tensor::d_k, tensor::d_v}, here, s.gradients);
      b.add(op_kind::accumulate, 0, incoming + gradient, sum);
      gradient = sum;
    }
    incoming = b.chunk({tensor::d_k, tensor::d_v}, next, s.gradients);
    b.add(op_kind::shift, gradients, gradient, incoming, only(along_column), -1);
  }
  b.add(op_kind::copy, 0, d_q, {find(result, tensor::d_q)});
  b.add(op_kind::copy, 0, incoming, {find(result, tensor::d_k), find(result, tensor::d_v)});
  return b.finish();
}

}  // namespace

schedule ring(const strategy& s, const attention& a, pass_kind pass) {
  if (pass == pass_kind::backward) return ring_backward(s);
  auto result = mesh(s, a, pass);
  result.name = "ring";
  return result;
}

}  // namespace attnsim
