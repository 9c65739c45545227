#include "kernels/backend.hpp"

namespace attnsim::kernels {

device_tensor dense(void* data, data_type type, const token_shape& shape) {
  const std::int64_t token_stride = shape.heads * shape.head_dim;
  return {type, {data, shape.tokens * token_stride, token_stride, shape.head_dim}};
}

std::size_t dense_bytes(data_type type, const token_shape& shape) {
  return shape.batch * shape.tokens * shape.heads * shape.head_dim * element_bytes(type);
}

device_tensor tokens_from(device_tensor tensor, std::int64_t first, std::int64_t step) {
  auto& view = tensor.view;
  view.data =
      static_cast<std::byte*>(view.data) + first * view.token_stride * element_bytes(tensor.type);
  view.token_stride *= step;
  return tensor;
}

}  // namespace attnsim::kernels
