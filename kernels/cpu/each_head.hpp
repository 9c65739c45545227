// A loop over the (batch, token, head) triples of a token_shape.
#pragma once

#include "kernels/attention_block.hpp"

namespace attnsim::kernels::cpu {

template <typename Body>
void for_each_head(const token_shape& shape, const Body& body) {
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
      for (std::int64_t head = 0; head < shape.heads; ++head) body(batch, token, head);
    }
  }
}

}  // namespace attnsim::kernels::cpu
