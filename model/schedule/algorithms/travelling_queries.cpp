// Rings in which keys stay and queries travel.
//
// burst: BurstAttention's backward pass (arXiv 2403.09347, optimize_bwd_comm): q, d_o and the row statistics go round, dQ
// follows one hop behind, dK, dV stay. Less to send than ring's K, V, dK, dV for MHA, more for grouped queries. Its forward
// pass is ring's. Bytes per rank: backward (P-1)(2q + 2l) + (P-1) qE.
//
// tokenring (TokenRing, arXiv 2412.20501): forward too; a partial result goes straight to its home, against the direction
// of the queries, so both directions of every link carry data. Wants links between all ranks.
// Bytes per rank: forward (P-1) q + (P-1)(qE + l), backward as burst.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

class travelling_queries {
 public:
  travelling_queries(const strategy& s, pass_kind pass, bool straight_home)
      : s_(s),
        backward_(pass == pass_kind::backward),
        straight_home_(straight_home),
        b_(s.schedule, rank_grid({s.rows, 1}), pass),
        queries_(b_.stream("queries")),
        results_(b_.stream("results")),
        reduction_(b_, along_column, results_, wire()) {}

  schedule write();

 private:
  precision wire() const { return backward_ ? s_.gradients : s_.partials; }
  std::vector<tensor> row_results() const {
    return backward_ ? std::vector{tensor::d_q} : std::vector{tensor::o, tensor::lse};
  }
  operands own_queries();
  void attend(const operands& queries, const operands& part, bool first);
  void bring_home(int k, const operands& part);
  void add_arrived(const operands& into);

  strategy s_;
  bool backward_;
  bool straight_home_;
  schedule_builder b_;
  int queries_;
  int results_;
  ring_reduction reduction_;
  operands keys_;
  operands key_sums_;  ///< dK, dV
  operands own_sum_;   ///< results of the own rows
  operands arrived_;   ///< to be added to them
};

operands travelling_queries::own_queries() {
  if (!backward_) return b_.own({tensor::q});
  const auto saved = b_.own({tensor::q, tensor::d_o, tensor::lse});
  const auto o = b_.own({tensor::o});
  const auto delta = b_.chunk({tensor::delta}, {});
  b_.add(op_kind::delta, 0, operands{find(saved, tensor::d_o)} + o, delta);
  return saved + delta;
}

void travelling_queries::attend(const operands& queries, const operands& part, bool first) {
  if (!backward_) return b_.add(op_kind::attention, 0, queries + keys_, part);
  const auto before = first ? operands{} : key_sums_;
  b_.add(op_kind::attention_backward, 0, queries + keys_ + before, part + key_sums_);
}

/// The part for the rank k further along; what comes in meanwhile is for the own rows.
void travelling_queries::bring_home(int k, const operands& part) {
  if (!straight_home_) return reduction_.hop(k, part);
  if (!arrived_.empty()) {
    const auto sum = b_.chunk(row_results(), {}, precision::fp32);
    add_arrived(sum);
    own_sum_ = sum;
  }
  arrived_ = b_.chunk(row_results(), {}, wire());
  b_.add(op_kind::shift, results_, part, arrived_, only(along_column), k);
}

void travelling_queries::add_arrived(const operands& into) {
  b_.add(backward_ ? op_kind::accumulate : op_kind::merge, 0, own_sum_ + arrived_, into);
}

schedule travelling_queries::write() {
  const std::vector<tensor> side =
      backward_ ? std::vector{tensor::q, tensor::d_o, tensor::lse, tensor::delta}
                : std::vector{tensor::q};
  auto queries = own_queries();
  keys_ = b_.own({tensor::k, tensor::v});
  const auto result = b_.own(row_results());
  if (backward_) key_sums_ = b_.chunk({tensor::d_k, tensor::d_v}, {}, precision::fp32);
  for (int k = 0; k < s_.rows; ++k) {
    const auto current = queries;
    if (k + 1 < s_.rows) {
      queries = b_.chunk(side, at(k + 1, 0));
      b_.add(op_kind::shift, queries_, current, queries, only(along_column), -1);
    }
    const auto part = b_.chunk(row_results(), at(k, 0), k == 0 ? precision::fp32 : wire());
    attend(current, part, k == 0);
    k == 0 ? void(own_sum_ = part) : bring_home(k, part);
  }
  if (straight_home_ && !arrived_.empty()) {
    add_arrived(result);
  } else {
    reduction_.finish(own_sum_, result);
  }
  if (backward_) b_.add(op_kind::copy, 0, key_sums_, b_.own({tensor::d_k, tensor::d_v}));
  return b_.finish();
}

}  // namespace

schedule burst(const strategy& s, const attention& a, pass_kind pass) {
  if (pass == pass_kind::forward) return ring(s, a, pass);
  return travelling_queries(s, pass, false).write();
}

schedule tokenring(const strategy& s, const attention&, pass_kind pass) {
  return travelling_queries(s, pass, true).write();
}

}  // namespace attnsim
