// All-gather of keys in two stages: first along rows, one rank of every node, over its own rail; then down columns, within
// nodes, all that came in. So each rank's link out of the node carries (C-1) 2kv and the rest stays inside. To be placed
// column-in-node: R ranks of a node, C nodes. Backward gathers again and reduce-scatters dK, dV the other way round.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

constexpr axis_set row = only(along_row), everywhere = only(along_row) | only(along_column);

class two_stages {
 public:
  two_stages(const strategy& s, const attention& a, pass_kind pass)
      : s_(s),
        b_(s.schedule, rank_grid({s.rows, s.cols}), pass),
        keys_(b_.stream("keys")),
        reorders_(a.mask == mask_kind::causal && is_zigzag(s.tokens)) {}

  schedule forward() {
    const auto q = b_.own({tensor::q});
    const auto kv = b_.own({tensor::k, tensor::v});
    const auto result = b_.own({tensor::o, tensor::lse});
    b_.add(op_kind::attention, 0, q + gather(kv), result);
    return b_.finish();
  }

  schedule backward() {
    const auto queries = own_queries(b_);
    const auto kv = b_.own({tensor::k, tensor::v});
    const auto d_q = b_.own({tensor::d_q});
    const auto d_kv = b_.own({tensor::d_k, tensor::d_v});
    const auto keys = gather(kv);
    auto sums = gradients(everywhere, {.ascending = reorders_});
    b_.add(op_kind::attention_backward, 0, queries + keys, d_q + sums);
    if (reorders_) {
      const auto in_slots = gradients(everywhere, {});
      b_.add(op_kind::copy, 0, sums, in_slots);
      sums = in_slots;
    }
    const auto of_row = gradients(row, {}), own = gradients(0, {});
    b_.add(op_kind::reduce_scatter, keys_, sums, of_row, only(along_column));
    b_.add(op_kind::reduce_scatter, keys_, of_row, own, row);
    b_.add(op_kind::copy, 0, own, d_kv);
    return b_.finish();
  }

 private:
  operands gather(const operands& own) {
    const std::vector<tensor> what{tensor::k, tensor::v};
    const auto of_row = b_.gathered(what, row);
    const auto all = b_.gathered(what, everywhere);
    b_.add(op_kind::all_gather, keys_, own, of_row, row);
    b_.add(op_kind::all_gather, keys_, of_row, all, only(along_column));
    if (!reorders_) return all;
    const auto sorted = b_.gathered(what, everywhere, {.ascending = true});
    b_.add(op_kind::copy, 0, all, sorted);
    return sorted;
  }

  operands gradients(axis_set axes, position where) {
    return b_.gathered({tensor::d_k, tensor::d_v}, axes, where, s_.gradients);
  }

  strategy s_;
  schedule_builder b_;
  int keys_;
  bool reorders_;  ///< so that each half of a zigzag chunk of queries is one kernel call
};

schedule hierarchical_allgather(const strategy& s, const attention& a, pass_kind pass) {
  two_stages program(s, a, pass);
  return pass == pass_kind::forward ? program.forward() : program.backward();
}

std::string several_columns(const strategy& s, const attention&) {
  return s.rows > 1 && s.cols > 1 ? "" : "has two stages (else it is allgather)";
}

volume hierarchical_allgather_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  const auto each = b.keys + b.key_results;
  return {
      .parts = {{row, (s.cols - 1) * each}, {only(along_column), (s.rows - 1) * (s.cols * each)}},
      .apart = true};
}

}  // namespace

algorithm describe_hierarchical_allgather() {
  return {.name = "hierarchical-allgather",
          .summary = "all keys gathered along rows between nodes, then down columns",
          .source = "arXiv 2407.21783, in two stages",
          .generate = hierarchical_allgather,
          .refusal = several_columns,
          .sends = hierarchical_allgather_volume,
          .placement = "column-in-node"};
}

}  // namespace attnsim
