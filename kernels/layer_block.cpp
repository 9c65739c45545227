#include "kernels/layer_block.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <stdexcept>
#include <string_view>

namespace attnsim::kernels {
namespace {

struct sized {
  std::string_view name;
  std::int64_t value;
};

void require_sizes(std::string_view operation, std::initializer_list<sized> sizes) {
  for (const auto& [name, value] : sizes) {
    if (value < 1)
      throw std::invalid_argument(
          fmt::format("{}: {} is {}, expected at least 1", operation, name, value));
  }
}

void require_sum_type(std::string_view operation, data_type type) {
  if (type == data_type::fp8)
    throw std::invalid_argument(
        fmt::format("{}: type is fp8, expected bf16, fp16 or fp32", operation));
}

template <typename Arguments>
void check_rows(std::string_view operation, const Arguments& a) {
  require_sizes(operation, {{"rows", a.rows}, {"width", a.width}});
  require_sum_type(operation, a.type);
}

template <typename Arguments>
void check_experts(std::string_view operation, const Arguments& a) {
  require_sizes(operation, {{"rows", a.at.rows},
                            {"active", a.at.active},
                            {"experts", a.at.experts},
                            {"width", a.width}});
  require_sum_type(operation, a.type);
}

}  // namespace

void check(const product_arguments& a) {
  require_sizes("product", {{"rows", a.rows}, {"cols", a.cols}, {"inner", a.inner}});
  require_sum_type("product", a.type);
  if (a.result_type == a.type || a.result_type == data_type::fp32) return;
  const auto own = a.type == data_type::fp32 ? "" : fmt::format("{} or ", name_of(a.type));
  throw std::invalid_argument(
      fmt::format("product: result_type is {}, expected {}fp32", name_of(a.result_type), own));
}

void check(const norm_arguments& a) {
  check_rows("norm", a);
}
void check(const norm_gradient_arguments& a) {
  check_rows("norm gradient", a);
}
void check(const gate_arguments& a) {
  check_rows("gate", a);
}
void check(const gate_gradient_arguments& a) {
  check_rows("gate gradient", a);
}

void check(const expert_order_arguments& a) {
  check_experts("order of tokens", a);
}
void check(const expert_sum_arguments& a) {
  check_experts("sum of experts", a);
}
void check(const expert_sum_gradient_arguments& a) {
  check_experts("gradient of experts' sum", a);
}

void check_rotation(const token_shape& shape) {
  check(shape);
  if (shape.head_dim % 2 != 0)
    throw std::invalid_argument(
        fmt::format("rotation: head_dim is {}, expected an even number", shape.head_dim));
}

}  // namespace attnsim::kernels
