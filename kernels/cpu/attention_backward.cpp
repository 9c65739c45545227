// FlashAttention-2 (arXiv 2307.08691), algorithm 2, with the loops exchanged: a tile of rows passes
// over the tiles of columns, so dQ is finished tile by tile while dK and dV of a whole key head
// build up in fp32.
#include <cmath>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/column_range.hpp"
#include "kernels/cpu/each_type.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/tile.hpp"

namespace attnsim::kernels::cpu {
namespace {

template <typename T, typename Result>
struct query_head {
  head_view<const T> query;
  head_view<const gradient_of<T>> output_gradient;
  head_view<const float> lse;
  head_view<const float> delta;
  head_view<Result> query_gradient;
};

template <typename T>
struct key_head {
  head_view<const T> key;
  head_view<const T> value;
  matrix key_gradient;
  matrix value_gradient;
};

/// As a product in fp8 reads it: e4m3 of what is scaled by `scale`.
void round_to_e4m3(matrix& m, float scale) {
  m = m.unaryExpr([scale](float x) { return float{e4m3(scale * x)} / scale; });
}

/// Scaled by a power of two so that the largest is near e4m3's largest.
template <typename T>
void round_gradient(matrix& m) {
  constexpr float largest = 448;
  if constexpr (std::is_same_v<T, e4m3>) {
    if (const float most = m.cwiseAbs().maxCoeff(); most > 0)
      round_to_e4m3(m, std::exp2(std::floor(std::log2(largest / most))));
  }
}

/// Scaled as in the forward pass.
template <typename T>
void round_probabilities_of(matrix& p) {
  constexpr float scale = 256;
  if constexpr (std::is_same_v<T, e4m3>) round_to_e4m3(p, scale);
}

struct backward_rows {
  std::int64_t first;
  matrix query;  ///< times the softmax scale
  matrix output_gradient;
  vector lse;
  vector delta;
  matrix query_gradient;  ///< over the softmax scale

  template <typename T, typename Result>
  backward_rows(const block_shape& shape, const query_head<T, Result>& head, std::int64_t first_row)
      : first(first_row),
        query(std::min(tile_rows, shape.rows - first_row), shape.head_dim),
        output_gradient(query.rows(), shape.value_dim()),
        lse(query.rows()),
        delta(query.rows()),
        query_gradient(matrix::Zero(query.rows(), shape.head_dim)) {
    load(head.query, first, query, softmax_scale(shape));
    load(head.output_gradient, first, output_gradient);
    round_gradient<T>(output_gradient);
    for (std::int64_t i = 0; i < rows(); ++i) {
      lse[i] = *head.lse.token(first + i);
      delta[i] = *head.delta.token(first + i);
    }
  }

  std::int64_t rows() const { return query.rows(); }
};

struct column_tile {
  std::int64_t first;
  matrix key;
  matrix value;

  template <typename T>
  column_tile(const key_head<T>& head, std::int64_t first_col, std::int64_t cols)
      : first(first_col),
        key(cols, head.key_gradient.cols()),
        value(cols, head.value_gradient.cols()) {
    load(head.key, first, key);
    load(head.value, first, value);
  }

  column_range range() const { return {first, first + key.rows()}; }
};

/// P of the tile: exp(Q K^T - L), 0 where hidden.
matrix probabilities(const block_shape& shape, const backward_rows& rows, const column_tile& cols) {
  matrix result = rows.query * cols.key.transpose();
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    const auto seen =
        visible_columns(shape.mask, rows.first + i, shape.cols).intersect(cols.range());
    auto row = result.row(i);
    if (seen.empty()) {
      row.setZero();
      continue;
    }
    row.head(seen.begin - cols.first).setZero();
    row.tail(cols.range().end - seen.end).setZero();
    auto visible = row.segment(seen.begin - cols.first, seen.size());
    visible = (visible.array() - rows.lse[i]).exp();
  }
  return result;
}

/// Adds the tile's part to the rows' dQ and the columns' dK and dV.
template <typename T>
void add_gradients(const block_shape& shape, backward_rows& rows, const column_tile& cols,
                   key_head<T>& head) {
  matrix p = probabilities(shape, rows, cols);
  matrix ds = rows.output_gradient * cols.value.transpose();
  ds = p.array() * (ds.colwise() - rows.delta).array();
  round_probabilities_of<T>(p);
  round_gradient<T>(ds);
  const auto width = cols.range().size();
  head.value_gradient.middleRows(cols.first, width).noalias() +=
      p.transpose() * rows.output_gradient;
  head.key_gradient.middleRows(cols.first, width).noalias() += ds.transpose() * rows.query;
  rows.query_gradient.noalias() += ds * cols.key;
}

template <typename T, typename Result>
void backward_of_query_head(const block_shape& shape, const query_head<T, Result>& query,
                            key_head<T>& key) {
  for (std::int64_t i = 0; i < shape.rows; i += tile_rows) {
    backward_rows rows(shape, query, i);
    const auto seen = visible_columns(shape.mask, i, i + rows.rows(), shape.cols);
    for (std::int64_t j = seen.begin; j < seen.end; j += tile_cols) {
      const column_tile cols(key, j, std::min(tile_cols, seen.end - j));
      add_gradients(shape, rows, cols, key);
    }
    rows.query_gradient *= softmax_scale(shape);
    store(rows.query_gradient, query.query_gradient, i);
  }
}

}  // namespace

template <typename T, typename Result>
void attention_backward(const block_shape& shape, tensor_view<const T> query,
                        tensor_view<const T> key, tensor_view<const T> value,
                        tensor_view<const gradient_of<T>> output_gradient,
                        tensor_view<const float> lse, tensor_view<const float> delta,
                        tensor_view<Result> query_gradient, tensor_view<Result> key_gradient,
                        tensor_view<Result> value_gradient, int threads) {
  check(shape);
  const std::int64_t group = shape.heads / shape.kv_heads;
  parallel_for(shape.batch * shape.kv_heads, threads, [&](std::int64_t index) {
    const std::int64_t batch = index / shape.kv_heads;
    const std::int64_t kv_head = index % shape.kv_heads;
    key_head<T> keys{head_of(key, batch, kv_head), head_of(value, batch, kv_head),
                     matrix::Zero(shape.cols, shape.head_dim),
                     matrix::Zero(shape.cols, shape.value_dim())};
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const query_head<T, Result> rows{head_of(query, batch, head),
                                       head_of(output_gradient, batch, head),
                                       head_of(lse, batch, head), head_of(delta, batch, head),
                                       head_of(query_gradient, batch, head)};
      backward_of_query_head(shape, rows, keys);
    }
    store(keys.key_gradient, head_of(key_gradient, batch, kv_head), 0);
    store(keys.value_gradient, head_of(value_gradient, batch, kv_head), 0);
  });
}

#define ATTNSIM_INSTANTIATE(T, Result)                                                       \
  template void attention_backward(                                                          \
      const block_shape&, tensor_view<const T>, tensor_view<const T>, tensor_view<const T>,  \
      tensor_view<const gradient_of<T>>, tensor_view<const float>, tensor_view<const float>, \
      tensor_view<Result>, tensor_view<Result>, tensor_view<Result>, int);
ATTNSIM_EACH_RESULT(ATTNSIM_INSTANTIATE)
ATTNSIM_EACH_FP8_RESULT(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

}  // namespace attnsim::kernels::cpu
