// Ring Attention (arXiv 2310.01889): queries stay, K and V travel round all ranks. Its forward pass is Mesh-Attention's
// with one query chunk a tile. Backward, dK and dV travel along with K and V and make one hop more, home to their rank
// (zhuzilin/ring-flash-attention).
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule ring_backward(const strategy& s) {
  schedule_builder b(s.schedule, rank_grid({s.rows, 1}), pass_kind::backward);
  const int keys = b.stream("keys"), gradients = b.stream("gradients");
  const auto queries = own_queries(b);
  auto kv = b.own({tensor::k, tensor::v});
  const auto d_q = b.chunk({tensor::d_q}, {}, precision::fp32);

  operands incoming;
  for (int step = 0; step < s.rows; ++step) {
    const auto here = at(step, 0), next = at(step + 1, 0);
    const auto block = kv;
    if (step + 1 < s.rows) {
      kv = b.chunk({tensor::k, tensor::v}, next);
      b.add(op_kind::shift, keys, block, kv, only(along_column), -1);
    }
    auto gradient = b.chunk({tensor::d_k, tensor::d_v}, here, s.gradients);
    const auto accumulator = step == 0 ? operands{} : d_q;
    b.add(op_kind::attention_backward, 0, queries + block + accumulator, d_q + gradient);
    if (step > 0) {
      const auto sum = b.chunk({tensor::d_k, tensor::d_v}, here, s.gradients);
      b.add(op_kind::accumulate, 0, incoming + gradient, sum);
      gradient = sum;
    }
    incoming = b.chunk({tensor::d_k, tensor::d_v}, next, s.gradients);
    b.add(op_kind::shift, gradients, gradient, incoming, only(along_column), -1);
  }
  b.add(op_kind::copy, 0, d_q, b.own({tensor::d_q}));
  b.add(op_kind::copy, 0, incoming, b.own({tensor::d_k, tensor::d_v}));
  return b.finish();
}

}  // namespace

schedule ring(const strategy& s, const attention& a, pass_kind pass) {
  return pass == pass_kind::backward ? ring_backward(s) : mesh(s, a, pass);
}

volume ring_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  return {.parts = {{only(along_column), (s.rows - 1) * b.keys + s.rows * b.key_results}}};
}

std::string one_column(const strategy& s, const attention&) {
  return s.cols == 1 ? "" : "runs on one column of ranks";
}

algorithm describe_ring() {
  return {.name = "ring",
          .summary = "queries stay, keys and values travel round all ranks",
          .source = "arXiv 2310.01889",
          .generate = ring,
          .refusal = one_column,
          .sends = ring_volume};
}

}  // namespace attnsim
