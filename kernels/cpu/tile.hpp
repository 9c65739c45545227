// Tiles of one head: a few tokens' elements in fp32, ready for a matrix product.
#pragma once

#include <algorithm>
#include <cstdint>

#include <Eigen/Core>

#include "kernels/attention_block.hpp"

namespace attnsim::kernels::cpu {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using vector = Eigen::VectorXf;

constexpr std::int64_t tile_rows = 128;
constexpr std::int64_t tile_cols = 128;

/// Token t's elements of one head of one batch entry are data[t * token_stride], data[t *
/// token_stride + 1], ...
template <typename T>
struct head_view {
  T* data;
  std::int64_t token_stride;

  T* token(std::int64_t t) const { return data + t * token_stride; }
};

template <typename T>
head_view<T> head_of(const tensor_view<T>& tensor, std::int64_t batch, std::int64_t head) {
  return {tensor.at(batch, 0, head), tensor.token_stride};
}

/// tile(t, d) = factor * element d of token first + t, for as many tokens as the tile has rows.
template <typename T>
void load(head_view<const T> head, std::int64_t first, matrix& tile, float factor = 1) {
  for (std::int64_t t = 0; t < tile.rows(); ++t) {
    const T* source = head.token(first + t);
    float* row = tile.row(t).data();
    for (std::int64_t d = 0; d < tile.cols(); ++d) row[d] = factor * static_cast<float>(source[d]);
  }
}

template <typename T>
void store(const matrix& tile, head_view<T> head, std::int64_t first) {
  for (std::int64_t t = 0; t < tile.rows(); ++t) {
    const float* row = tile.row(t).data();
    T* destination = head.token(first + t);
    for (std::int64_t d = 0; d < tile.cols(); ++d) destination[d] = static_cast<T>(row[d]);
  }
}

}  // namespace attnsim::kernels::cpu
