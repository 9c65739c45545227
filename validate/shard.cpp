#include "validate/shard.hpp"

namespace attnsim::validate {

std::int64_t head_count(tensor t, const head_range& heads) {
  if (t == tensor::latent) return 1;
  return is_key_side(t) ? heads.keys : heads.queries;
}

std::int64_t first_head(tensor t, const head_range& heads) {
  if (t == tensor::latent) return 0;
  return is_key_side(t) ? heads.first_key : heads.first_query;
}

kernels::token_shape shape_of(const attention& a, tensor what, std::int64_t heads,
                              std::int64_t tokens) {
  return {.batch = a.batch, .tokens = tokens, .heads = heads, .head_dim = head_elements(a, what)};
}

kernels::device_tensor placed(void* data, data_type type, const kernels::token_shape& shape) {
  const auto row = shape.heads * shape.head_dim;
  return {type, {data, row, shape.batch * row, shape.head_dim}};
}

kernels::device_tensor heads_from(kernels::device_tensor tensor, std::int64_t first) {
  const auto offset = first * tensor.view.head_stride * element_bytes(tensor.type);
  tensor.view.data = static_cast<std::byte*>(tensor.view.data) + offset;
  return tensor;
}

data_type type_of(const attention& a, tensor what, precision format) {
  return number_type(a, what, format);
}

}  // namespace attnsim::validate
