#include "validate/layer/layer_memory.hpp"

#include <stdexcept>

namespace attnsim::validate {

layer_memory::layer_memory(const layer_plan& plan, kernels::backend& device) : device_(device) {
  const auto& s = plan.setting;
  const parameter_layout layout(s);
  const auto t = s.tokens, l = s.tokens / s.cut.tensor, h = s.model.hidden,
             f = s.model.intermediate / s.cut.tensor;
  const auto make_half = [&](std::int64_t elements) { return make(elements, plan.type()); };
  for (auto* local :
       {&residual, &branch, &output_gradient, &attention_output, &mlp_output, &sum_gradient,
        &input_gradient, &normed_gradient, &sum[0], &sum[1], &normed[0], &normed[1]})
    *local = make_half(l * h);
  for (auto& one : scale) one = make(l, data_type::fp32);
  projected_width = layout.of(parameter::projections).rows;
  projected = make_half(t * projected_width);
  projected_gradient = make_half(t * projected_width);
  if (s.model.experts > 0) make_experts(plan);
  const auto mlp_rows = s.model.experts > 0 ? l * s.model.active_experts : t,
             mlp_width = s.model.experts > 0 ? s.model.expert_intermediate : f;
  for (auto* one : {&up, &up_gradient}) *one = make_half(mlp_rows * 2 * mlp_width);
  for (auto* one : {&inner, &inner_gradient}) *one = make_half(mlp_rows * mlp_width);
  if (s.cut.tensor > 1) {
    for (auto* all : {&gathered, &gathered_gradient, &parts}) *all = make_half(t * h);
  }
  make_parameters(plan, layout.elements());
  const auto batch = plan.forward_attention.work().problem().batch;
  angles = make(t / batch * s.model.shape.head_dim, data_type::fp32);
}

layer_memory::~layer_memory() {
  for (auto* one : held_) device_.free(one);
}

area layer_memory::make(std::int64_t elements, data_type type) {
  held_.push_back(device_.allocate(static_cast<std::size_t>(elements * element_bytes(type))));
  return {static_cast<std::byte*>(held_.back()), elements, type};
}

/// Where nobody shares the experts nothing travels.
void layer_memory::make_experts(const layer_plan& plan) {
  const auto& s = plan.setting;
  const auto l = s.tokens / s.cut.tensor, copies = l * s.model.active_experts;
  for (auto* one : {&logits, &logits_gradient}) *one = make(l * s.model.experts, plan.type());
  const auto make_copies = [&] { return make(copies * s.model.hidden, plan.type()); };
  const bool travel = s.cut.expert > 1;
  ordered = make_copies();
  received = travel ? make_copies() : ordered;
  put_out = make_copies();
  returned = travel ? make_copies() : put_out;
  ordered_gradient = make_copies();
  received_gradient = travel ? make_copies() : ordered_gradient;
  for (auto* one : {&places, &chosen}) *one = make(copies, data_type::fp32);
}

void layer_memory::make_parameters(const layer_plan& plan, std::int64_t count) {
  const auto replicas = plan.shards_parameters ? plan.setting.cut.replicas() : 1;
  parameters = make(count, plan.type());
  kept_parameters = replicas > 1 ? make(count / replicas, plan.type()) : parameters;
  gradients = make(count, data_type::fp32);
  kept_gradients = replicas > 1 ? make(count / replicas, data_type::fp32) : gradients;
  if (!plan.setting.adds_gradients && plan.type() != data_type::fp32)
    written_gradients = make(count, plan.type());
}

const area& layer_memory::of(layer_tensor t) const {
  switch (t) {
    case layer_tensor::residual:
      return residual;
    case layer_tensor::branch:
      return branch;
    case layer_tensor::output_gradient:
      return output_gradient;
    case layer_tensor::parameters:
      return kept_parameters;
    case layer_tensor::attention_sum:
      return sum[1];
    case layer_tensor::mlp_output:
      return mlp_output;
    case layer_tensor::input_gradient:
      return input_gradient;
    case layer_tensor::parameter_gradients:
      return kept_gradients;
  }
  throw std::logic_error("no such tensor");
}

}  // namespace attnsim::validate
