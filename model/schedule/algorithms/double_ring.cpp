// Double ring (LoongTrain, arXiv 2406.18485; BurstAttention's double_ring): ring attention on a grid of R rows of C ranks.
// Keys go round the row, and meanwhile the row's first ones travel on to the next row, so that every rank's link out of
// the node carries 1/C of what a single ring sends over one of them. Backward, a chunk's dK, dV go round the row with it
// and on to the next row one rank further, where the chunk itself starts.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

constexpr axis_set to_next = only(along_column) | only(along_row);

class double_ring_program {
 public:
  double_ring_program(const strategy& s, pass_kind pass)
      : s_(s),
        backward_(pass == pass_kind::backward),
        b_(s.schedule, rank_grid({s.rows, s.cols}), pass),
        inner_(b_.stream("inner")),
        outer_(b_.stream("outer")),
        gradients_(backward_ ? b_.stream("gradients") : 0) {}

  schedule write();

 private:
  /// Keys that start a row's round: the own ones, then those that come from the row before.
  operands next_row(const operands& keys, int row);
  void attend(const operands& keys, int row, int col);
  void send_gradient(operands gradient, int row, int col);

  strategy s_;
  bool backward_;
  schedule_builder b_;
  int inner_;
  int outer_;
  int gradients_;
  operands queries_;
  operands sum_;       ///< of the own rows: o and lse, or d_q
  operands incoming_;  ///< dK, dV so far of the block to come
};

operands double_ring_program::next_row(const operands& keys, int row) {
  const auto next = b_.chunk({tensor::k, tensor::v}, at(row, 0));
  b_.add(op_kind::shift, outer_, keys, next, only(along_column), -1);
  return next;
}

void double_ring_program::attend(const operands& keys, int row, int col) {
  const auto before = row + col == 0 ? operands{} : sum_;
  if (!backward_) return b_.add(op_kind::attention, 0, queries_ + keys + before, sum_);
  const auto gradient = b_.chunk({tensor::d_k, tensor::d_v}, at(row, col), s_.gradients);
  b_.add(op_kind::attention_backward, 0, queries_ + keys + before, sum_ + gradient);
  send_gradient(gradient, row, col);
}

void double_ring_program::send_gradient(operands gradient, int row, int col) {
  const auto chunk = [&](position where) {
    return b_.chunk({tensor::d_k, tensor::d_v}, where, s_.gradients);
  };
  if (!incoming_.empty()) {
    const auto sum = chunk(at(row, col));
    b_.add(op_kind::accumulate, 0, incoming_ + gradient, sum);
    gradient = sum;
  }
  const bool stays_in_row = col + 1 < s_.cols;
  incoming_ = chunk(at(stays_in_row ? row : row + 1, col + 1));
  b_.add(op_kind::shift, gradients_, gradient, incoming_, stays_in_row ? only(along_row) : to_next,
         -1);
}

schedule double_ring_program::write() {
  queries_ = own_queries(b_);
  auto first = b_.own({tensor::k, tensor::v});
  const auto result = b_.own(row_results(b_.pass()));
  sum_ = b_.chunk(row_results(b_.pass()), {}, precision::fp32);
  for (int row = 0; row < s_.rows; ++row) {
    auto keys = first;
    if (row + 1 < s_.rows) first = next_row(keys, row + 1);
    for (int col = 0; col < s_.cols; ++col) {
      const auto block = keys;
      if (col + 1 < s_.cols) {
        keys = b_.chunk({tensor::k, tensor::v}, at(row, col + 1));
        b_.add(op_kind::shift, inner_, block, keys, only(along_row), -1);
      }
      attend(block, row, col);
    }
  }
  b_.add(op_kind::copy, 0, sum_, result);
  if (backward_) b_.add(op_kind::copy, 0, incoming_, b_.own({tensor::d_k, tensor::d_v}));
  return b_.finish();
}

schedule double_ring(const strategy& s, const attention&, pass_kind pass) {
  return double_ring_program(s, pass).write();
}

std::string two_rings(const strategy& s, const attention&) {
  return s.rows > 1 && s.cols > 1 ? "" : "has two rings (else it is ring or usp)";
}

volume double_ring_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  return {.parts = {{only(along_row), s.rows * ((s.cols - 1) * (b.keys + b.key_results))},
                    {only(along_column), (s.rows - 1) * b.keys},
                    {to_next, s.rows * b.key_results, false}}};
}

}  // namespace

algorithm describe_double_ring() {
  return {.name = "double-ring",
          .summary = "rings within rows while keys travel on between rows (LoongTrain)",
          .source = "arXiv 2406.18485",
          .generate = double_ring,
          .refusal = two_rings,
          .sends = double_ring_volume,
          .heads = algorithm::exchange::possible};
}

}  // namespace attnsim
