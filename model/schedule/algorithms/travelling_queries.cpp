// Rings in which keys stay and queries travel: burst's backward pass, tokenring.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

class travelling_program {
 public:
  travelling_program(const strategy& s, pass_kind pass, bool straight_home)
      : s_(s),
        backward_(pass == pass_kind::backward),
        straight_home_(straight_home),
        results_of_rows_(row_results(pass)),
        b_(s.schedule, rank_grid({s.rows, 1}), pass),
        queries_(b_.stream("queries")),
        results_(b_.stream("results")),
        reduction_(b_, along_column, results_, wire()) {}

  schedule write();

 private:
  precision wire() const { return backward_ ? s_.gradients : s_.partials; }
  void attend(const operands& queries, const operands& part, bool first);
  void bring_home(int k, const operands& part);
  void add_arrived(const operands& into);

  strategy s_;
  bool backward_;
  bool straight_home_;
  std::vector<tensor> results_of_rows_;
  schedule_builder b_;
  int queries_;
  int results_;
  ring_reduction reduction_;
  operands keys_;
  operands key_sums_;  ///< dK, dV
  operands own_sum_;   ///< results of the own rows
  operands arrived_;   ///< to be added to them
};

void travelling_program::attend(const operands& queries, const operands& part, bool first) {
  if (!backward_) return b_.add(op_kind::attention, 0, queries + keys_, part);
  const auto before = first ? operands{} : key_sums_;
  b_.add(op_kind::attention_backward, 0, queries + keys_ + before, part + key_sums_);
}

/// The part for the rank k further along; what comes in meanwhile is for the own rows.
void travelling_program::bring_home(int k, const operands& part) {
  if (!straight_home_) return reduction_.hop(k, part);
  if (!arrived_.empty()) {
    const auto sum = b_.chunk(results_of_rows_, {}, precision::fp32);
    add_arrived(sum);
    own_sum_ = sum;
  }
  arrived_ = b_.chunk(results_of_rows_, {}, wire());
  b_.add(op_kind::shift, results_, part, arrived_, only(along_column), k);
}

void travelling_program::add_arrived(const operands& into) {
  b_.add(backward_ ? op_kind::accumulate : op_kind::merge, 0, own_sum_ + arrived_, into);
}

schedule travelling_program::write() {
  auto queries = own_queries(b_);
  keys_ = b_.own({tensor::k, tensor::v});
  const auto result = b_.own(results_of_rows_);
  if (backward_) key_sums_ = b_.chunk({tensor::d_k, tensor::d_v}, {}, precision::fp32);
  for (int k = 0; k < s_.rows; ++k) {
    const auto current = queries;
    if (k + 1 < s_.rows) {
      queries = b_.chunk(query_side(b_.pass()), at(k + 1, 0));
      b_.add(op_kind::shift, queries_, current, queries, only(along_column), -1);
    }
    const auto part = b_.chunk(results_of_rows_, at(k, 0), k == 0 ? precision::fp32 : wire());
    attend(current, part, k == 0);
    k == 0 ? void(own_sum_ = part) : bring_home(k, part);
  }
  straight_home_ ? add_arrived(result) : reduction_.finish(own_sum_, result);
  if (backward_) b_.add(op_kind::copy, 0, key_sums_, b_.own({tensor::d_k, tensor::d_v}));
  return b_.finish();
}

}  // namespace

schedule travelling_queries(const strategy& s, pass_kind pass, bool straight_home) {
  return travelling_program(s, pass, straight_home).write();
}

volume travelling_volume(const strategy& s, const chunk_bytes& b, bool straight_home) {
  return {.parts = {{only(along_column), (s.rows - 1) * b.queries},
                    {only(along_column), (s.rows - 1) * b.row_results, !straight_home}}};
}

}  // namespace attnsim
