// Matrix products by Eigen: kernels/layer_block.hpp. Numbers of 16 bits become fp32 first, which takes as long as reading them.
#pragma once

#include "kernels/layer_block.hpp"

namespace attnsim::kernels::cpu {

void product(const product_arguments&);

}  // namespace attnsim::kernels::cpu
