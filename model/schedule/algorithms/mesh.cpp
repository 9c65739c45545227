// Mesh-Attention (arXiv 2512.20968): each rank computes an a x b tile of the (query chunk, key chunk) matrix that holds
// its own pair: the query chunks of its row (a = C ranks, consecutive) and the key chunks of its column (b = R ranks,
// stride a). All transfers are point-to-point: queries and keys travel round the row and the column, partial outputs
// back along the row; backward also dK, dV along the column. The order is that of mesh_steps.hpp.
#include "model/schedule/algorithms/mesh_steps.hpp"

#include <map>

#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

/// The chunks of one side of the tile. Several rows need every key chunk until the end: they stay in a cache. A single
/// row uses each once: they pass through.
class tile_side {
 public:
  tile_side(schedule_builder& b, const std::vector<tensor>& what, const operands& own, int axis,
            int extent, bool keep)
      : builder_(&b), what_(what), axis_(axis), keep_(keep && extent > 1), newest_(own) {
    if (!keep_) return;
    cache_ = b.cache(what, axis);
    newest_ = slot_of(cache_, axis, 0);
    b.add(op_kind::copy, 0, own, newest_);
  }

  /// The next chunk arrives from the neighbour.
  void receive(int stream) {
    const auto sent = newest_;
    ++held_;
    if (keep_) {
      newest_ = slot_of(cache_, axis_, held_);
    } else {
      position where;
      where.shift[static_cast<std::size_t>(axis_)] = held_;
      newest_ = builder_->chunk(what_, where);
      pending_ = sent;
    }
    builder_->add(op_kind::shift, stream, sent, newest_, only(axis_), -1);
  }

  /// Chunks first .. first + count - 1, for a computation launched after the arrival of the chunk that follows them.
  operands chunks(int first, int count) const {
    if (keep_) return slot_of(cache_, axis_, first, count);
    return first == held_ ? newest_ : pending_;
  }

 private:
  schedule_builder* builder_;
  std::vector<tensor> what_;
  int axis_;
  bool keep_;
  int held_ = 0;
  operands cache_;  ///< empty unless chunks are kept
  operands newest_;
  operands pending_;  ///< the chunk before the newest, still to be computed with
};

/// Sums over the tile for its rows' results, or its columns': fp32 where several blocks contribute.
class accumulators {
 public:
  accumulators(schedule_builder& b, const std::vector<tensor>& what, int axis, precision format)
      : builder_(&b), what_(what), axis_(axis), format_(format) {}

  /// All in one buffer, for operations on several rows or columns at once.
  void keep_together() { cache_ = builder_->cache(what_, axis_, {}, format_); }

  operands slots(int first, int count) {
    if (!cache_.empty()) return slot_of(cache_, axis_, first, count);
    auto& single = singles_[first];
    if (single.empty()) {
      position where;
      where.shift[static_cast<std::size_t>(axis_)] = first;
      single = builder_->chunk(what_, where, format_);
    }
    return single;
  }

 private:
  schedule_builder* builder_;
  std::vector<tensor> what_;
  int axis_;
  precision format_;
  operands cache_;
  std::map<int, operands> singles_;
};

mesh_costs costs_of(const strategy& s, const attention& a, pass_kind pass) {
  const double kv = 1.0 / static_cast<double>(a.group_size());
  const double partial = s.partials == precision::fp32 ? 2 : 1,
               gradient = s.gradients == precision::fp32 ? 2 : 1;
  const bool backward = pass == pass_kind::backward;
  return {.block = s.block_cost,
          .keys = 2 * kv,
          .queries = backward ? 2.0 : 1.0,
          .output = backward ? gradient : partial,
          .key_gradient = backward ? 2 * kv * gradient : 0};
}

}  // namespace

schedule mesh(const strategy& s, const attention& a, pass_kind pass) {
  const bool backward = pass == pass_kind::backward;
  const int cols = s.cols, rows = s.rows;
  schedule_builder b(s.schedule, rank_grid({rows, cols}), pass);
  const int keys = b.stream("keys"), queries = b.stream("queries"), outputs = b.stream("outputs");
  const int gradients = backward ? b.stream("gradients") : 0;

  const auto own = own_queries(b);
  const auto own_keys = b.own({tensor::k, tensor::v});
  const auto own_row = b.own(row_results(pass));
  const auto own_column = backward ? b.own({tensor::d_k, tensor::d_v}) : operands{};

  tile_side query_chunks(b, query_side(pass), own, along_row, cols, true);
  tile_side key_chunks(b, {tensor::k, tensor::v}, own_keys, along_column, rows, cols > 1);
  accumulators row_sums(b, row_results(pass), along_row, precision::fp32);
  accumulators column_sums(b, {tensor::d_k, tensor::d_v}, along_column,
                           cols > 1 ? precision::fp32 : s.gradients);
  if (cols > 1) row_sums.keep_together();
  if (cols > 1 && rows > 1 && backward) column_sums.keep_together();
  ring_reduction row_reduction(b, along_row, outputs, backward ? s.gradients : s.partials);
  ring_reduction column_reduction(b, along_column, gradients, s.gradients);

  for (const auto& step : mesh_steps(cols, rows, costs_of(s, a, pass), backward)) {
    if (step.receives == arrival::keys) key_chunks.receive(keys);
    if (step.receives == arrival::queries) query_chunks.receive(queries);
    if (step.output > 0) row_reduction.hop(step.output, row_sums.slots(step.output, 1));
    if (step.key_gradient > 0) {
      column_reduction.hop(step.key_gradient, column_sums.slots(step.key_gradient, 1));
    }
    if (step.rows == 0) continue;
    auto reads = query_chunks.chunks(step.row_first, step.rows) +
                 key_chunks.chunks(step.col_first, step.cols);
    const auto row_part = row_sums.slots(step.row_first, step.rows);
    if (step.col_first > 0) reads = reads + row_part;
    auto writes = row_part;
    if (backward) {
      const auto column_part = column_sums.slots(step.col_first, step.cols);
      if (step.row_first > 0) reads = reads + column_part;
      writes = writes + column_part;
    }
    b.add(backward ? op_kind::attention_backward : op_kind::attention, 0, reads, writes);
  }
  row_reduction.finish(row_sums.slots(0, 1), own_row);
  if (backward) column_reduction.finish(column_sums.slots(0, 1), own_column);
  return b.finish();
}

volume tile_volume(const strategy& s, const chunk_bytes& b, pass_kind pass) {
  volume all{.parts = {{only(along_row), (s.cols - 1) * (b.queries + b.row_results)},
                       {only(along_column), (s.rows - 1) * (b.keys + b.key_results)}}};
  if (s.order == kv_order::transposed)
    all.parts.push_back({0, pass == pass_kind::forward ? b.keys : b.key_results});
  return all;
}

algorithm describe_mesh() {
  return {.name = "mesh",
          .summary = "a tile of query and key chunks a rank, in greedy steps",
          .source = "arXiv 2512.20968",
          .generate = mesh,
          .sends = tile_volume,
          .heads = algorithm::exchange::possible,
          .sends_partials = true,
          .weighs_blocks = true};
}

}  // namespace attnsim
