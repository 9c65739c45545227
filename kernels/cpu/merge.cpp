#include "kernels/cpu/merge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/each_head.hpp"
#include "kernels/cpu/each_type.hpp"

namespace attnsim::kernels::cpu {
namespace {

struct weights {
  float lse;
  float accumulator = 0;
  float part = 0;
};

weights weights_of(float accumulator, float part) {
  const float larger = std::max(accumulator, part);
  if (larger == -std::numeric_limits<float>::infinity()) return {.lse = larger};
  const float a = std::exp(accumulator - larger);
  const float b = std::exp(part - larger);
  return {.lse = larger + std::log(a + b), .accumulator = a / (a + b), .part = b / (a + b)};
}

}  // namespace

template <typename Accumulator, typename T>
void merge(const token_shape& shape, tensor_view<Accumulator> output, tensor_view<float> lse,
           tensor_view<const T> part, tensor_view<const float> part_lse) {
  check(shape);
  const auto weighted = [](float weight, float x) { return weight == 0 ? 0 : weight * x; };
  for_each_head(shape, [&](std::int64_t batch, std::int64_t token, std::int64_t head) {
    float& row_lse = *lse.at(batch, token, head);
    const auto weight = weights_of(row_lse, *part_lse.at(batch, token, head));
    row_lse = weight.lse;
    Accumulator* a = output.at(batch, token, head);
    const T* b = part.at(batch, token, head);
    for (std::int64_t d = 0; d < shape.head_dim; ++d) {
      a[d] = static_cast<Accumulator>(weighted(weight.accumulator, a[d]) +
                                      weighted(weight.part, b[d]));
    }
  });
}

template <typename T>
void weigh(const token_shape& shape, tensor_view<T> output, tensor_view<const float> part_lse,
           std::int64_t parts, std::int64_t own, tensor_view<float> whole_lse) {
  check(shape);
  check_part(parts, own);
  for_each_head(shape, [&](std::int64_t batch, std::int64_t token, std::int64_t head) {
    const auto lse_of = [&](std::int64_t part) {
      return *part_lse.at(batch, part * shape.tokens + token, head);
    };
    float whole = lse_of(0);
    for (std::int64_t part = 1; part < parts; ++part) whole = weights_of(whole, lse_of(part)).lse;
    const float lse = lse_of(own);
    const bool saw_nothing = lse == -std::numeric_limits<float>::infinity();
    const float weight = saw_nothing ? 0 : std::exp(lse - whole);
    T* o = output.at(batch, token, head);
    for (std::int64_t d = 0; d < shape.head_dim; ++d)
      o[d] = static_cast<T>(saw_nothing ? 0 : weight * o[d]);
    *whole_lse.at(batch, token, head) = whole;
  });
}

template <typename T>
void sink(const token_shape& shape, tensor_view<T> output, tensor_view<float> lse,
          tensor_view<const float> sinks, std::int64_t parts) {
  check(shape);
  const float less = std::log(static_cast<float>(parts));
  for_each_head(shape, [&](std::int64_t batch, std::int64_t token, std::int64_t head) {
    float& row_lse = *lse.at(batch, token, head);
    const auto weight = weights_of(row_lse, *sinks.at(batch, token, head) - less);
    row_lse = weight.lse;
    T* o = output.at(batch, token, head);
    for (std::int64_t d = 0; d < shape.head_dim; ++d)
      o[d] = static_cast<T>(weight.accumulator == 0 ? 0 : weight.accumulator * o[d]);
  });
}

#define ATTNSIM_INSTANTIATE(A, T)                                             \
  template void merge(const token_shape&, tensor_view<A>, tensor_view<float>, \
                      tensor_view<const T>, tensor_view<const float>);
ATTNSIM_EACH_TYPE_PAIR(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

#define ATTNSIM_INSTANTIATE(T)                                                                    \
  template void weigh(const token_shape&, tensor_view<T>, tensor_view<const float>, std::int64_t, \
                      std::int64_t, tensor_view<float>);                                          \
  template void sink(const token_shape&, tensor_view<T>, tensor_view<float>,                      \
                     tensor_view<const float>, std::int64_t);
ATTNSIM_EACH_TYPE(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

}  // namespace attnsim::kernels::cpu
