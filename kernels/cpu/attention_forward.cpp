// FlashAttention-2 (arXiv 2307.08691), algorithm 1: a tile of rows passes over the tiles of
// columns, carrying the running maximum m and the sum of exp(S - m) of each row, and O scaled by
// that sum.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/column_range.hpp"
#include "kernels/cpu/each_type.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/tile.hpp"

namespace attnsim::kernels::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct forward_rows {
  std::int64_t first;
  matrix query;   ///< times the softmax scale
  matrix output;  ///< sum_j exp(S[i,j] - maximum_i) V_j over the columns so far
  vector maximum;
  vector sum;  ///< sum_j exp(S[i,j] - maximum_i)

  forward_rows(const block_shape& shape, std::int64_t first_row)
      : first(first_row),
        query(std::min(tile_rows, shape.rows - first_row), shape.head_dim),
        output(matrix::Zero(query.rows(), shape.value_dim())),
        maximum(vector::Constant(query.rows(), -infinity)),
        sum(vector::Zero(query.rows())) {}

  std::int64_t rows() const { return query.rows(); }
};

/// Probabilities in fp8 are 256 times as large, so that few are too small for it; the row's sum is of the exact ones, as in
/// FlashAttention-3.
template <typename T>
constexpr float probability_scale = std::is_same_v<T, e4m3> ? 256 : 1;

/// Replaces row i's scores by exp(S - m) with the row's new maximum m, 0 where hidden, and rescales
/// what the row holds.
void exponentiate_row(forward_rows& rows, std::int64_t i, column_range seen, matrix& scores) {
  auto row = scores.row(i);
  if (seen.empty()) {
    row.setZero();
    return;
  }
  row.head(seen.begin).setZero();
  row.tail(row.size() - seen.end).setZero();
  auto visible = row.segment(seen.begin, seen.size());
  const float maximum = std::max(rows.maximum[i], visible.maxCoeff());
  const float shrink = std::exp(rows.maximum[i] - maximum);
  visible = (visible.array() - maximum).exp();
  rows.sum[i] = rows.sum[i] * shrink + visible.sum();
  rows.output.row(i) *= shrink;
  rows.maximum[i] = maximum;
}

/// As the product with the values reads them.
template <typename T>
void round_probabilities(matrix& p) {
  if constexpr (std::is_same_v<T, e4m3>)
    p = p.unaryExpr([](float x) { return float{e4m3(probability_scale<T> * x)}; });
}

/// Adds the tile of columns that starts at `first` to the rows.
template <typename T>
void absorb(forward_rows& rows, std::int64_t first, const matrix& key, const matrix& value,
            const block_shape& shape, matrix& scores) {
  scores.noalias() = rows.query * key.transpose();
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    const auto seen = visible_columns(shape.mask, rows.first + i, shape.cols);
    const auto here = seen.intersect({first, first + key.rows()});
    exponentiate_row(rows, i, {here.begin - first, here.end - first}, scores);
  }
  round_probabilities<T>(scores);
  rows.output.noalias() += scores * value;
}

/// O and L from the running sums; 0 and -infinity for rows that saw nothing.
template <typename T, typename Result>
void finish(forward_rows& rows, head_view<Result> output, head_view<float> lse) {
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    if (rows.sum[i] > 0) rows.output.row(i) /= probability_scale<T> * rows.sum[i];
    *lse.token(rows.first + i) = rows.maximum[i] + std::log(rows.sum[i]);
  }
  store(rows.output, output, rows.first);
}

template <typename T, typename Result>
void forward_of_head(const block_shape& shape, head_view<const T> query, head_view<const T> key,
                     head_view<const T> value, head_view<Result> output, head_view<float> lse) {
  matrix key_tile, value_tile, scores;
  for (std::int64_t i = 0; i < shape.rows; i += tile_rows) {
    forward_rows rows(shape, i);
    load(query, i, rows.query, softmax_scale(shape));
    const auto seen = visible_columns(shape.mask, i, i + rows.rows(), shape.cols);
    for (std::int64_t j = seen.begin; j < seen.end; j += tile_cols) {
      key_tile.resize(std::min(tile_cols, seen.end - j), shape.head_dim);
      value_tile.resize(key_tile.rows(), shape.value_dim());
      load(key, j, key_tile);
      load(value, j, value_tile);
      absorb<T>(rows, j, key_tile, value_tile, shape, scores);
    }
    finish<T>(rows, output, lse);
  }
}

}  // namespace

template <typename T, typename Result>
void attention_forward(const block_shape& shape, tensor_view<const T> query,
                       tensor_view<const T> key, tensor_view<const T> value,
                       tensor_view<Result> output, tensor_view<float> lse, int threads) {
  check(shape);
  parallel_for(shape.batch * shape.heads, threads, [&](std::int64_t index) {
    const std::int64_t batch = index / shape.heads;
    const std::int64_t head = index % shape.heads;
    const std::int64_t kv_head = head / (shape.heads / shape.kv_heads);
    forward_of_head(shape, head_of(query, batch, head), head_of(key, batch, kv_head),
                    head_of(value, batch, kv_head), head_of(output, batch, head),
                    head_of(lse, batch, head));
  });
}

#define ATTNSIM_INSTANTIATE(T, Result)                                                            \
  template void attention_forward(const block_shape&, tensor_view<const T>, tensor_view<const T>, \
                                  tensor_view<const T>, tensor_view<Result>, tensor_view<float>,  \
                                  int);
ATTNSIM_EACH_RESULT(ATTNSIM_INSTANTIATE)
ATTNSIM_EACH_FP8_RESULT(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

}  // namespace attnsim::kernels::cpu
