// What back ends need of elementwise.cu besides kernels/cuda/attention.hpp.
#pragma once

#include "kernels/cuda/attention.hpp"

namespace attnsim::kernels::cuda {

/// to <- value. Row statistics: head_dim 1, fp32.
void fill(const extents& shape, const tensor& to, float value, stream queue);

/// An O with <dO, O> = delta, to within the rounding of its type: dO delta / |dO|^2. For libraries that compute delta
/// themselves, where the rows' own O is elsewhere.
void output_with_delta(const extents& shape, const tensor& d_o, tensor_view<const float> delta,
                       const tensor& o, stream queue);

}  // namespace attnsim::kernels::cuda
