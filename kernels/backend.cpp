#include "kernels/backend.hpp"

#include <stdexcept>
#include <string>

#include "model/error.hpp"

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

namespace {

[[noreturn]] void no_graphs(const backend& b) {
  throw std::runtime_error(std::string(b.name()) + " devices have no graphs");
}

[[noreturn]] void no_layers(const backend& b) {
  throw infeasible("layers on " + std::string(b.name()) + " devices: expected kernel cpu or cuda");
}

[[noreturn]] void no_experts(const backend& b) {
  throw infeasible("layers with experts on " + std::string(b.name()) +
                   " devices: expected kernel cpu");
}

}  // namespace

void backend::forward_each(stream_id stream, std::span<const forward_arguments> blocks) {
  for (const auto& one : blocks) forward(stream, one);
}

void backend::expand(stream_id, const expand_shape&, const device_tensor&, const device_tensor&,
                     const device_tensor&, const device_tensor&) {
  throw infeasible("latents between ranks: expected kernel cpu, which alone expands them");
}

void backend::product(stream_id, const product_arguments&) {
  no_layers(*this);
}
void backend::norm(stream_id, const norm_arguments&) {
  no_layers(*this);
}
void backend::norm_gradient(stream_id, const norm_gradient_arguments&) {
  no_layers(*this);
}
void backend::gate(stream_id, const gate_arguments&) {
  no_layers(*this);
}
void backend::gate_gradient(stream_id, const gate_gradient_arguments&) {
  no_layers(*this);
}
void backend::order_tokens(stream_id, const expert_order_arguments&) {
  no_experts(*this);
}
void backend::sum_experts(stream_id, const expert_sum_arguments&) {
  no_experts(*this);
}
void backend::sum_experts_gradient(stream_id, const expert_sum_gradient_arguments&) {
  no_experts(*this);
}
void backend::rotate(stream_id, const token_shape&, const device_tensor&, const device_tensor&,
                     const float*, bool) {
  no_layers(*this);
}

void backend::begin_capture(stream_id) {
  no_graphs(*this);
}
graph_id backend::end_capture(stream_id) {
  no_graphs(*this);
}
void backend::launch(stream_id, graph_id) {
  no_graphs(*this);
}
void backend::release(graph_id) {
  no_graphs(*this);
}

}  // namespace attnsim::kernels
