// Keys and values of the latents of latent attention (DeepSeek-V2, arXiv 2405.04434, eq. 9 to 17): of each token and K/V head
//
//   key   = the first head_dim - rotary elements of latent x expansion, then the token's rotary elements
//   value = the other elements of latent x expansion
//
// latent [batch][token][1][rank + rotary], expansion [1][1][kv_heads][rank][head_dim - rotary + v_head_dim], key and value as a
// kernel reads them. Sums are fp32.
#pragma once

#include "kernels/attention_block.hpp"

namespace attnsim::kernels::cpu {

template <typename T, typename Expanded>
void expand(const expand_shape&, tensor_view<const T> latent, tensor_view<const T> expansion,
            tensor_view<Expanded> key, tensor_view<Expanded> value);

}  // namespace attnsim::kernels::cpu
