// Norms, rotations and gates: kernels/layer_block.hpp. Of every type but fp8; arithmetic is fp32.
#pragma once

#include "kernels/layer_block.hpp"

namespace attnsim::kernels::cpu {

void norm(const norm_arguments&);
void norm_gradient(const norm_gradient_arguments&);
void gate(const gate_arguments&);
void gate_gradient(const gate_gradient_arguments&);
void order_tokens(const expert_order_arguments&);
void sum_experts(const expert_sum_arguments&);
void sum_experts_gradient(const expert_sum_gradient_arguments&);

/// `angles`: of each token the cosines, then the sines.
template <typename To, typename From>
void rotate(const token_shape&, tensor_view<To> destination, tensor_view<const From> source,
            const float* angles, bool back);

}  // namespace attnsim::kernels::cpu
