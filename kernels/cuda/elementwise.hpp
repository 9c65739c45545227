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

/// (O, L) <- their merge with zeros whose log-sum-exp is the head's sink less log(parts). `sinks` as row statistics.
void sink(const extents& shape, const tensor& o, tensor_view<float> l,
          tensor_view<const float> sinks, std::int64_t parts, stream queue);

/// Keys and values of latents, all bf16 or all fp16; the rank and what is made of a head's key and value multiples of 64, else
/// infeasible: kernels/cpu/expand.hpp.
void expand(const expand_shape& shape, const tensor& latent, const tensor& expansion,
            const tensor& key, const tensor& value, stream queue);

}  // namespace attnsim::kernels::cuda
