// Latent attention whose latents travel in the place of keys and values. A token's latent and the rotary elements beside it are a
// small part of what a product makes of them for all heads (DeepSeek-V3: 576 elements of 40,960), so it may pay to send them and
// expand them where they arrive, as vLLM's context-parallel prefill gathers them (_context_parallel_compute_prefill_context).
//
// The schedule stays as it is: a rank starts with the latents of its chunk beside its keys and values, which the layer has made; all
// operations that move keys and values move latents; and before a kernel reads keys and values that came from elsewhere they are
// expanded, a matrix product of
//   batch x tokens  x  latent rank  x  K/V heads x (head_dim - rotary + v_head_dim)
// (arXiv 2412.19437, eq. 1 to 5). Ranks that share heads by tensor parallelism or an exchange expand those of their heads.
//
// A cache holds latents only, so where there is a cached prefix a rank's own keys and values are expanded too, whatever travels:
// those of the cached tokens, and with them those of its new ones. Through an exchange of heads latents are gathered by all ranks of
// the group, which then have nothing but latents.
#pragma once

#include "model/schedule/strategy.hpp"

namespace attnsim {

enum class own_keys {
  made,     ///< by the layer
  latents,  ///< to be expanded as others are
};

/// Forward schedules before an exchange of heads is written around them (head_exchange.cpp).
schedule with_latent_keys(schedule, key_form sent, own_keys);

}  // namespace attnsim
