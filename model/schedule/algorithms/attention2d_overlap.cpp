// Attention2D with overlap (arXiv 2503.15758, algorithms 4 to 6; backward reconstructed by the same pattern): keys travel
// up the column hop by hop while the own queries meet them; then queries travel along the row, each meeting all the
// column's keys, and partial outputs follow one hop behind. Queries are double-buffered, keys stay.
//
// Backward: K, V as in forward; then q, d_o and the statistics travel and dQ follows; dK, dV are summed for the whole
// column and reduced at the end by one reduce-scatter.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

class overlapped_program {
 public:
  overlapped_program(const strategy& s, pass_kind pass)
      : s_(s),
        backward_(pass == pass_kind::backward),
        transposed_(s.order == kv_order::transposed),
        b_(s.schedule, rank_grid({s.rows, s.cols}), pass),
        row_(b_.stream("row")),
        column_(b_.stream("column")),
        results_(b_.stream("results")) {
    if (transposed_) b_.use_column_major_chunks();
  }

  schedule write();

 private:
  position key_home() const { return {.transposed = transposed_}; }
  operands own_keys();
  void attend(const operands& queries, int first, int count, const operands& row_sum, bool fresh);
  void finish_columns();

  strategy s_;
  bool backward_;
  bool transposed_;
  schedule_builder b_;
  int row_;
  int column_;
  int results_;
  operands keys_;         ///< all chunks of the column, own first
  operands column_sums_;  ///< dK, dV for them
};

/// Forward transposes K, V and saves them so; backward finds them there.
operands overlapped_program::own_keys() {
  if (!transposed_ || backward_)
    return b_.own({tensor::k, tensor::v}, precision::storage, key_home());
  const auto kv = b_.own({tensor::k, tensor::v});
  const auto kept = b_.own({tensor::k, tensor::v}, precision::storage, key_home());
  b_.add(op_kind::transpose, column_, kv, kept);
  return kept;
}

void overlapped_program::attend(const operands& queries, int first, int count,
                                const operands& row_sum, bool fresh) {
  auto reads = queries + slot_of(keys_, along_column, first, count);
  if (first > 0) reads = reads + row_sum;
  if (!backward_) {
    b_.add(op_kind::attention, 0, reads, row_sum);
    return;
  }
  const auto columns = slot_of(column_sums_, along_column, first, count);
  if (!fresh) reads = reads + columns;
  b_.add(op_kind::attention_backward, 0, reads, row_sum + columns);
}

/// Reduces dK, dV over the column and brings them home.
void overlapped_program::finish_columns() {
  const std::vector<tensor> what{tensor::d_k, tensor::d_v};
  const auto result = b_.own(what);
  const auto all = b_.gathered(what, only(along_column), key_home(), s_.gradients);
  b_.add(op_kind::copy, 0, column_sums_, all);
  auto own = b_.chunk(what, key_home(), s_.gradients);
  b_.add(op_kind::reduce_scatter, column_, all, own, only(along_column));
  if (transposed_) {
    const auto home = b_.chunk(what, {}, s_.gradients);
    b_.add(op_kind::transpose, column_, own, home);
    own = home;
  }
  b_.add(op_kind::copy, 0, own, result);
}

schedule overlapped_program::write() {
  const auto of_rows = row_results(b_.pass());
  auto queries = own_queries(b_);
  const auto kept = own_keys();
  const auto result = b_.own(of_rows);
  keys_ = b_.cache({tensor::k, tensor::v}, along_column, key_home());
  if (backward_)
    column_sums_ = b_.cache({tensor::d_k, tensor::d_v}, along_column, key_home(), precision::fp32);
  b_.add(op_kind::copy, 0, kept, slot_of(keys_, along_column, 0));

  const auto own_chunk = queries;
  const auto pass_on = [&](int k) {
    const auto next = b_.chunk(query_side(b_.pass()), at(0, k));
    b_.add(op_kind::shift, row_, queries, next, only(along_row), -1);
    queries = next;
  };
  if (s_.cols > 1) pass_on(1);

  const auto own_sum = b_.chunk(of_rows, {}, precision::fp32);
  for (int i = 0; i < s_.rows; ++i) {
    if (i + 1 < s_.rows) {
      b_.add(op_kind::shift, column_, slot_of(keys_, along_column, i),
             slot_of(keys_, along_column, i + 1), only(along_column), -1);
    }
    attend(own_chunk, i, 1, own_sum, true);
  }

  const auto wire = backward_ ? s_.gradients : s_.partials;
  ring_reduction reduction(b_, along_row, results_, wire);
  for (int k = 1; k < s_.cols; ++k) {
    const auto current =
        queries;  // NOLINT(performance-unnecessary-copy-initialization): pass_on changes them
    if (k + 1 < s_.cols) pass_on(k + 1);
    const auto sum = b_.chunk(of_rows, at(0, k), wire);
    attend(current, 0, s_.rows, sum, false);
    reduction.hop(k, sum);
  }
  reduction.finish(own_sum, result);
  if (backward_) finish_columns();
  return b_.finish();
}

schedule attention2d_overlap(const strategy& s, const attention&, pass_kind pass) {
  return overlapped_program(s, pass).write();
}

}  // namespace

algorithm describe_attention2d_overlap() {
  return {.name = "attention2d-overlap",
          .summary = "Attention2D with all transfers hop by hop under computation",
          .source = "arXiv 2503.15758, algorithms 4 to 6",
          .generate = attention2d_overlap,
          .sends = tile_volume,
          .heads = algorithm::exchange::possible,
          .transposes = true,
          .sends_partials = true};
}

}  // namespace attnsim
