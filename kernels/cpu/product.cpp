#include "kernels/cpu/product.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <vector>

#include "kernels/with_type.hpp"

namespace attnsim::kernels::cpu {
namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// An operand as it lies, in fp32: its own memory or a copy.
class operand {
 public:
  operand(const void* data, data_type type, std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols) {
    if (type == data_type::fp32) {
      data_ = static_cast<const float*>(data);
      return;
    }
    copy_.resize(static_cast<std::size_t>(rows * cols));
    with_type(type, [&]<typename T>(std::type_identity<T>) {
      const T* from = static_cast<const T*>(data);
      std::transform(from, from + rows * cols, copy_.begin(), [](T x) { return float{x}; });
    });
    data_ = copy_.data();
  }

  Eigen::Map<const matrix> values() const { return {data_, rows_, cols_}; }

 private:
  std::int64_t rows_, cols_;
  std::vector<float> copy_;
  const float* data_;
};

using strided = Eigen::Map<matrix, 0, Eigen::OuterStride<>>;

void add_product(const product_arguments& a, strided to) {
  const auto lying = [](const void* data, data_type type, bool transposed, std::int64_t rows,
                        std::int64_t cols) {
    return operand(data, type, transposed ? cols : rows, transposed ? rows : cols);
  };
  const auto l = lying(a.left, a.type, a.left_transposed, a.rows, a.inner);
  const auto r = lying(a.right, a.type, a.right_transposed, a.inner, a.cols);
  const auto left = l.values();
  const auto right = r.values();
  if (a.left_transposed && a.right_transposed)
    to.noalias() += left.transpose() * right.transpose();
  else if (a.left_transposed)
    to.noalias() += left.transpose() * right;
  else if (a.right_transposed)
    to.noalias() += left * right.transpose();
  else
    to.noalias() += left * right;
}

}  // namespace

void product(const product_arguments& a) {
  if (a.result_type == data_type::fp32) {
    strided to(static_cast<float*>(a.result), a.rows, a.cols, Eigen::OuterStride<>(a.stride()));
    if (!a.adds) to.setZero();
    return add_product(a, to);
  }
  matrix sum = matrix::Zero(a.rows, a.cols);
  add_product(a, {sum.data(), a.rows, a.cols, Eigen::OuterStride<>(a.cols)});
  with_type(a.result_type, [&]<typename T>(std::type_identity<T>) {
    for (std::int64_t row = 0; row < a.rows; ++row) {
      T* to = static_cast<T*>(a.result) + row * a.stride();
      for (std::int64_t i = 0; i < a.cols; ++i)
        to[i] = T(sum(row, i) + (a.adds ? float{to[i]} : 0.f));
    }
  });
}

}  // namespace attnsim::kernels::cpu
