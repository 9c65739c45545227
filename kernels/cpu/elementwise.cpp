#include "kernels/cpu/elementwise.hpp"

#include <algorithm>

#include "kernels/cpu/each_head.hpp"
#include "kernels/cpu/each_type.hpp"

namespace attnsim::kernels::cpu {

using std::int64_t;

template <typename T>
void attention_delta(const token_shape& shape, tensor_view<const T> output,
                     tensor_view<const T> output_gradient, tensor_view<float> delta) {
  check(shape);
  for_each_head(shape, [&](int64_t batch, int64_t token, int64_t head) {
    const T* x = output.at(batch, token, head);
    const T* y = output_gradient.at(batch, token, head);
    float sum = 0;
    for (int64_t d = 0; d < shape.head_dim; ++d) sum += float{x[d]} * float{y[d]};
    *delta.at(batch, token, head) = sum;
  });
}

template <typename Sum, typename T>
void accumulate(const token_shape& shape, tensor_view<Sum> sum, tensor_view<const T> part) {
  check(shape);
  for_each_head(shape, [&](int64_t batch, int64_t token, int64_t head) {
    Sum* a = sum.at(batch, token, head);
    const T* b = part.at(batch, token, head);
    for (int64_t d = 0; d < shape.head_dim; ++d) a[d] = static_cast<Sum>(float{a[d]} + float{b[d]});
  });
}

template <typename To, typename From>
void cast(const token_shape& shape, tensor_view<To> destination, tensor_view<const From> source) {
  check(shape);
  for_each_head(shape, [&](int64_t batch, int64_t token, int64_t head) {
    const From* from = source.at(batch, token, head);
    std::transform(from, from + shape.head_dim, destination.at(batch, token, head),
                   [](float x) { return static_cast<To>(x); });
  });
}

template <typename T>
void fill(const token_shape& shape, tensor_view<T> destination, float value) {
  check(shape);
  for_each_head(shape, [&](int64_t batch, int64_t token, int64_t head) {
    std::fill_n(destination.at(batch, token, head), shape.head_dim, static_cast<T>(value));
  });
}

template <typename T>
void interleave(const token_shape& shape, int64_t parts, tensor_view<T> destination,
                tensor_view<const T> source) {
  check(shape, parts);
  const int64_t n = shape.tokens / parts;
  for_each_head(shape, [&](int64_t batch, int64_t token, int64_t head) {
    const int64_t from = token % parts * n + token / parts;
    std::copy_n(source.at(batch, from, head), shape.head_dim, destination.at(batch, token, head));
  });
}

#define ATTNSIM_INSTANTIATE(T)                                                                  \
  template void attention_delta(const token_shape&, tensor_view<const T>, tensor_view<const T>, \
                                tensor_view<float>);                                            \
  template void fill(const token_shape&, tensor_view<T>, float);                                \
  template void interleave(const token_shape&, int64_t, tensor_view<T>, tensor_view<const T>);
ATTNSIM_EACH_TYPE(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

#define ATTNSIM_INSTANTIATE(A, B)                                                     \
  template void accumulate(const token_shape&, tensor_view<A>, tensor_view<const B>); \
  template void cast(const token_shape&, tensor_view<A>, tensor_view<const B>);
ATTNSIM_EACH_TYPE_PAIR(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

}  // namespace attnsim::kernels::cpu
