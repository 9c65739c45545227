#include "validate/shard.hpp"

namespace attnsim::validate {

std::vector<tensor> results_of(pass_kind pass) {
  if (pass == pass_kind::forward) return {tensor::o, tensor::lse};
  return {tensor::d_q, tensor::d_k, tensor::d_v};
}

kernels::token_shape shape_of(const attention& a, tensor what, std::int64_t tokens) {
  return {.batch = a.batch,
          .tokens = tokens,
          .heads = is_key_side(what) ? a.kv_heads : a.heads,
          .head_dim = is_statistic(what) ? 1 : a.head_dim};
}

kernels::device_tensor placed(void* data, data_type type, const kernels::token_shape& shape) {
  const auto row = shape.heads * shape.head_dim;
  return {type, {data, row, shape.batch * row, shape.head_dim}};
}

data_type type_of(const attention& a, tensor what, precision format) {
  return format == precision::fp32 || is_statistic(what) ? data_type::fp32 : a.dtype;
}

}  // namespace attnsim::validate
