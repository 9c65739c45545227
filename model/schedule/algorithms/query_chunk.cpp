#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {

std::vector<tensor> query_side(pass_kind pass) {
  if (pass == pass_kind::forward) return {tensor::q};
  return {tensor::q, tensor::d_o, tensor::lse, tensor::delta};
}

std::vector<tensor> row_results(pass_kind pass) {
  if (pass == pass_kind::forward) return {tensor::o, tensor::lse};
  return {tensor::d_q};
}

operands own_queries(schedule_builder& b) {
  if (b.pass() == pass_kind::forward) return b.own({tensor::q});
  const auto saved = b.own({tensor::q, tensor::d_o, tensor::lse});
  const auto delta = b.chunk({tensor::delta}, {});
  b.add(op_kind::delta, 0, operands{find(saved, tensor::d_o)} + b.own({tensor::o}), delta);
  return saved + delta;
}

}  // namespace attnsim
