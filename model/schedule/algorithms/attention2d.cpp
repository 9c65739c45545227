// Attention2D without overlap (arXiv 2503.15758, algorithms 1 and 7; backward reconstructed from its saved tensors):
// queries are gathered along the row, keys and values along the column, one kernel call computes the whole block, and the
// partial outputs are reduced along the row.
//
// kv_order::transposed is the paper's: ranks are homes of chunks column-major and K, V first change places over the grid,
// so that on striped tokens row r holds the queries and column c the keys that are r and c modulo sqrt(P), and one plain
// (strictly) causal call serves every rank. kv_order::direct leaves keys where they are: any R x C, as Mesh-Attention and
// TensorRT-LLM do, at the price of more kernel calls under a causal mask.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

/// What both passes share: the streams, and keys as each rank keeps them between the passes.
class attention2d_program {
 public:
  attention2d_program(const strategy& s, const attention& a, pass_kind pass)
      : s_(s),
        b_(s.schedule, rank_grid({s.rows, s.cols}), pass),
        row_(b_.stream("row")),
        column_(b_.stream("column")) {
    transposed_ = s.order == kv_order::transposed;
    if (transposed_) b_.use_column_major_chunks();
    const bool causal = a.mask == mask_kind::causal;
    reorders_all_ = causal && transposed_ && s.tokens == token_layout::striped;
    reorders_keys_ = reorders_all_ || (causal && s.cols == 1 && is_zigzag(s.tokens));
  }

  schedule forward();
  schedule backward();

 private:
  position key_home() const { return {.transposed = transposed_}; }
  int extent(int axis) const { return axis == along_row ? s_.cols : s_.rows; }
  bool reorders(int axis) const { return axis == along_row ? reorders_all_ : reorders_keys_; }

  /// The chunks of `own` from the ranks along `axis`, in ascending token order where one causal call needs it.
  operands gather(int axis, int stream, const std::vector<tensor>& what, const operands& own,
                  position home) {
    if (extent(axis) == 1) return own;
    const auto all = b_.gathered(what, only(axis), home);
    b_.add(op_kind::all_gather, stream, own, all, only(axis));
    return reorders(axis) ? reordered(what, axis, all, home) : all;
  }

  operands reordered(const std::vector<tensor>& what, int axis, const operands& all,
                     position home) {
    home.ascending = true;
    const auto sorted = b_.gathered(what, only(axis), home);
    b_.add(op_kind::copy, 0, all, sorted);
    return sorted;
  }

  /// A buffer for results of the whole row or column, in the token order of its inputs.
  operands results(const std::vector<tensor>& what, int axis, precision format, position home) {
    home.ascending = reorders(axis);
    return b_.gathered(what, only(axis), home, format);
  }

  /// The same of gradients. Where nobody else adds to them they are the rank's results, unless a kernel that writes one
  /// format only has to write others in fp32.
  operands gradients(const std::vector<tensor>& what, int axis, position home,
                     const operands& own) {
    if (extent(axis) > 1) return results(what, axis, s_.gradients, home);
    return s_.gradients == precision::storage ? own : b_.chunk(what, home, s_.gradients);
  }

  /// The same in slot order, as the reduction needs it.
  operands slot_order(const std::vector<tensor>& what, int axis, precision format, position home,
                      const operands& sorted) {
    if (extent(axis) == 1 || !reorders(axis)) return sorted;
    const auto all = b_.gathered(what, only(axis), home, format);
    b_.add(op_kind::copy, 0, sorted, all);
    return all;
  }

  void reduce_outputs(const operands& partials, const operands& result);
  operands reduce_gradients(const std::vector<tensor>& what, int axis, int stream,
                            const operands& all, position home);

  void keep(const operands& own, const operands& result) {
    if (own.front().buffer != result.front().buffer) b_.add(op_kind::copy, 0, own, result);
  }

  strategy s_;
  schedule_builder b_;
  int row_;
  int column_;
  bool transposed_ = false;
  bool reorders_all_ = false;  ///< gathered queries and keys into ascending token order
  bool reorders_keys_ =
      false;  ///< keys alone: with all of them at hand, each half of a zigzag chunk is one call
};

schedule attention2d_program::forward() {
  const auto q = b_.own({tensor::q});
  const auto kv = b_.own({tensor::k, tensor::v});
  const auto result = b_.own({tensor::o, tensor::lse});
  auto kept = kv;
  if (transposed_) {
    kept = b_.own({tensor::k, tensor::v}, precision::storage, key_home());
    b_.add(op_kind::transpose, column_, kv, kept);
  }
  const auto queries = gather(along_row, row_, {tensor::q}, q, {});
  const auto keys = gather(along_column, column_, {tensor::k, tensor::v}, kept, key_home());
  if (s_.cols == 1) {
    b_.add(op_kind::attention, 0, queries + keys, result);
    return b_.finish();
  }
  const auto what = row_results(pass_kind::forward);
  const auto partials = results(what, along_row, s_.partials, {});
  b_.add(op_kind::attention, 0, queries + keys, partials);
  reduce_outputs(slot_order(what, along_row, s_.partials, {}, partials), result);
  return b_.finish();
}

void attention2d_program::reduce_outputs(const operands& partials, const operands& result) {
  if (s_.reduction == reduction_kind::all_to_all) {
    const auto received = b_.gathered({tensor::o, tensor::lse}, only(along_row),
                                      {.copies = only(along_row)}, s_.partials);
    b_.add(op_kind::all_to_all, row_, partials, received, only(along_row));
    b_.add(op_kind::merge, 0, received, result);
    return;
  }
  ring_reduction reduction(b_, along_row, row_, s_.partials);
  for (int k = 1; k < s_.cols; ++k) reduction.hop(k, slot_of(partials, along_row, k));
  reduction.finish(slot_of(partials, along_row, 0), result);
}

schedule attention2d_program::backward() {
  const auto own = own_queries(b_);
  const auto kv = b_.own({tensor::k, tensor::v}, precision::storage, key_home());
  const auto d_q = b_.own({tensor::d_q});
  const auto d_kv = b_.own({tensor::d_k, tensor::d_v});

  const std::vector<tensor> key_side{tensor::d_k, tensor::d_v};
  const auto queries = gather(along_row, row_, query_side(pass_kind::backward), own, {});
  const auto keys = gather(along_column, column_, {tensor::k, tensor::v}, kv, key_home());
  const auto row_sums = gradients({tensor::d_q}, along_row, {}, d_q);
  const auto column_sums = gradients(key_side, along_column, key_home(), d_kv);
  b_.add(op_kind::attention_backward, 0, queries + keys, row_sums + column_sums);
  const auto row_slots = slot_order({tensor::d_q}, along_row, s_.gradients, {}, row_sums);
  const auto column_slots =
      slot_order(key_side, along_column, s_.gradients, key_home(), column_sums);

  const auto own_row = reduce_gradients({tensor::d_q}, along_row, row_, row_slots, {});
  auto own_column = reduce_gradients(key_side, along_column, column_, column_slots, key_home());
  if (transposed_) {
    const auto home = b_.chunk(key_side, {}, s_.gradients);
    b_.add(op_kind::transpose, column_, own_column, home);
    own_column = home;
  }
  keep(own_row, d_q);
  keep(own_column, d_kv);
  return b_.finish();
}

operands attention2d_program::reduce_gradients(const std::vector<tensor>& what, int axis,
                                               int stream, const operands& all, position home) {
  if (extent(axis) == 1) return all;
  const auto own = b_.chunk(what, home, s_.gradients);
  b_.add(op_kind::reduce_scatter, stream, all, own, only(axis));
  return own;
}

}  // namespace

schedule attention2d(const strategy& s, const attention& a, pass_kind pass) {
  attention2d_program program(s, a, pass);
  return pass == pass_kind::forward ? program.forward() : program.backward();
}

volume attention2d_volume(const strategy& s, const chunk_bytes& b, pass_kind pass) {
  auto all = tile_volume(s, b, pass);
  all.apart = true;
  return all;
}

algorithm describe_attention2d() {
  return {.name = "attention2d",
          .summary =
              "gathers queries along rows and keys along columns, one kernel call, reduces outputs",
          .source = "arXiv 2503.15758, algorithms 1 and 7",
          .generate = attention2d,
          .sends = attention2d_volume,
          .heads = algorithm::exchange::possible,
          .transposes = true,
          .reduces = true,
          .sends_partials = true};
}

}  // namespace attnsim
