#include "kernels/attention_block.hpp"

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace attnsim::kernels {
namespace {

struct named_size {
  std::string_view name;
  std::int64_t value;
};

void check_positive(std::string_view what, std::initializer_list<named_size> sizes) {
  for (const auto& size : sizes) {
    if (size.value < 1) {
      throw std::invalid_argument(
          fmt::format("{}: {} is {}, expected at least 1", what, size.name, size.value));
    }
  }
}

}  // namespace

float softmax_scale(const block_shape& shape) {
  return shape.scale != 0 ? shape.scale : 1 / std::sqrt(static_cast<float>(shape.head_dim));
}

void check(const block_shape& shape) {
  check_positive("attention block", {{"batch", shape.batch},
                                     {"heads", shape.heads},
                                     {"kv_heads", shape.kv_heads},
                                     {"head_dim", shape.head_dim},
                                     {"rows", shape.rows},
                                     {"cols", shape.cols}});
  if (shape.heads % shape.kv_heads != 0) {
    throw std::invalid_argument(fmt::format("attention block: kv_heads {} does not divide heads {}",
                                            shape.kv_heads, shape.heads));
  }
  check(shape.mask);
}

void check(const token_shape& shape) {
  check_positive("token block", {{"batch", shape.batch},
                                 {"tokens", shape.tokens},
                                 {"heads", shape.heads},
                                 {"head_dim", shape.head_dim}});
}

void check(const expand_shape& shape) {
  check_positive("expansion", {{"batch", shape.batch},
                               {"tokens", shape.count},
                               {"kv_heads", shape.kv_heads},
                               {"head_dim", shape.head_dim},
                               {"v_head_dim", shape.v_head_dim},
                               {"rank", shape.rank}});
  if (shape.rotary < 0 || shape.rotary >= shape.head_dim) {
    throw std::invalid_argument(
        fmt::format("expansion: rotary is {}, expected 0 to {}", shape.rotary, shape.head_dim - 1));
  }
}

void check(const token_shape& shape, std::int64_t parts) {
  check(shape);
  if (parts < 1 || shape.tokens % parts != 0) {
    throw std::invalid_argument(
        fmt::format("interleave: {} parts do not divide {} tokens", parts, shape.tokens));
  }
}

void check_part(std::int64_t parts, std::int64_t part) {
  if (part < 0 || part >= parts)
    throw std::invalid_argument(fmt::format("weigh: there is no part {} of {}", part, parts));
}

}  // namespace attnsim::kernels
