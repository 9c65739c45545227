#include "kernels/cpu/product.hpp"

#include <Eigen/Core>

#include "kernels/with_type.hpp"

namespace attnsim::kernels::cpu {
namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

matrix in_single(const void* data, data_type type, std::int64_t rows, std::int64_t cols) {
  matrix result(rows, cols);
  with_type(type, [&]<typename T>(std::type_identity<T>) {
    const T* from = static_cast<const T*>(data);
    std::transform(from, from + rows * cols, result.data(), [](T x) { return float{x}; });
  });
  return result;
}

/// Calls use(matrix) with the operand's rows x cols, wherever they lie.
template <typename Use>
void with_operand(const void* data, data_type type, std::int64_t rows, std::int64_t cols,
                  const Use& use) {
  if (type == data_type::fp32)
    return use(Eigen::Map<const matrix>(static_cast<const float*>(data), rows, cols));
  use(in_single(data, type, rows, cols));
}

/// The same of one that may lie transposed.
template <typename Use>
void with_operand(const void* data, data_type type, bool transposed, std::int64_t rows,
                  std::int64_t cols, const Use& use) {
  if (!transposed) return with_operand(data, type, rows, cols, use);
  with_operand(data, type, cols, rows, [&](const auto& m) { use(m.transpose()); });
}

template <typename T>
void store(const product_arguments& a, const matrix& product) {
  T* to = static_cast<T*>(a.result);
  for (std::int64_t i = 0; i < a.rows * a.cols; ++i)
    to[i] = T(product.data()[i] + (a.adds ? float{to[i]} : 0.f));
}

template <typename Left, typename Right>
void multiply(const product_arguments& a, const Left& left, const Right& right) {
  if (a.result_type == data_type::fp32) {
    Eigen::Map<matrix> to(static_cast<float*>(a.result), a.rows, a.cols);
    if (a.adds)
      to.noalias() += left * right;
    else
      to.noalias() = left * right;
    return;
  }
  matrix result(a.rows, a.cols);
  result.noalias() = left * right;
  with_type(a.result_type, [&]<typename T>(std::type_identity<T>) { store<T>(a, result); });
}

}  // namespace

void product(const product_arguments& a) {
  with_operand(a.left, a.type, a.left_transposed, a.rows, a.inner, [&](const auto& left) {
    with_operand(a.right, a.type, a.right_transposed, a.inner, a.cols,
                 [&](const auto& right) { multiply(a, left, right); });
  });
}

}  // namespace attnsim::kernels::cpu
