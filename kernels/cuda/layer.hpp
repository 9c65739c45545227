// Norms, rotations and gates on a GPU: kernels/layer_block.hpp. bf16, fp16 and fp32.
#pragma once

#include "kernels/cuda/attention.hpp"
#include "kernels/layer_block.hpp"

namespace attnsim::kernels::cuda {

/// Widths are multiples of 8; a norm has at most 16384, its gradient 8192. infeasible for others.
void norm(const norm_arguments& arguments, stream queue);
void norm_gradient(const norm_gradient_arguments& arguments, stream queue);
void gate(const gate_arguments& arguments, stream queue);
void gate_gradient(const gate_gradient_arguments& arguments, stream queue);

/// head_dim is a multiple of 16.
void rotate(const extents& shape, const tensor& to, const tensor& from, const float* angles,
            bool back, stream queue);

}  // namespace attnsim::kernels::cuda
