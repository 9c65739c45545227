// Attention sinks after any schedule: one learned logit a query head is one more key without a value, so it merges into a whole
// row's output as a partial of zeros with the logit as its log-sum-exp. Backward reads the log-sum-exp with it and needs no more;
// the gradient of the logits themselves, a sum over all rows, is left out.
#include <algorithm>

#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

/// What the program leaves last in a resident buffer.
operand last_result(const schedule& s, tensor what) {
  for (auto op = s.program.rbegin(); op != s.program.rend(); ++op) {
    if (contains(op->writes, what) && s.buffer_of(find(op->writes, what)).resident)
      return find(op->writes, what);
  }
  return {};
}

bool has_sinks(const schedule& s) {
  return std::any_of(s.program.begin(), s.program.end(),
                     [](const operation& op) { return op.kind == op_kind::sink; });
}

}  // namespace

schedule with_sinks(schedule s) {
  if (s.pass != pass_kind::forward || has_sinks(s)) return s;
  const operands rows{last_result(s, tensor::o), last_result(s, tensor::lse)};
  const auto heads = s.buffer_of(rows.front()).heads;
  s.buffers.push_back({.what = tensor::sinks, .resident = true, .heads = heads});
  const operand logits{.buffer = static_cast<int>(s.buffers.size()) - 1, .what = tensor::sinks};
  s.program.push_back({.kind = op_kind::sink, .reads = rows + operands{logits}, .writes = rows});
  derive_needs(s);
  return s;
}

}  // namespace attnsim
