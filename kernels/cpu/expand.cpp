#include "kernels/cpu/expand.hpp"

#include <algorithm>
#include <vector>

#include "kernels/cpu/each_head.hpp"
#include "kernels/cpu/each_type.hpp"

namespace attnsim::kernels::cpu {

using std::int64_t;

template <typename T, typename Expanded>
void expand(const expand_shape& shape, tensor_view<const T> latent, tensor_view<const T> expansion,
            tensor_view<Expanded> key, tensor_view<Expanded> value) {
  check(shape);
  const auto made = shape.head_dim - shape.rotary, width = made + shape.v_head_dim;
  std::vector<float> sums(static_cast<std::size_t>(width));
  for_each_head(shape.tokens(), [&](int64_t batch, int64_t token, int64_t head) {
    const T* c = latent.at(batch, token, 0);
    const T* product = expansion.at(0, 0, head);
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (int64_t r = 0; r < shape.rank; ++r) {
      for (int64_t d = 0; d < width; ++d)
        sums[static_cast<std::size_t>(d)] += float{c[r]} * float{product[r * width + d]};
    }
    Expanded* k = key.at(batch, token, head);
    for (int64_t d = 0; d < shape.head_dim; ++d) {
      const float x =
          d < made ? sums[static_cast<std::size_t>(d)] : float{c[shape.rank + d - made]};
      k[d] = static_cast<Expanded>(x);
    }
    Expanded* v = value.at(batch, token, head);
    for (int64_t d = 0; d < shape.v_head_dim; ++d)
      v[d] = static_cast<Expanded>(sums[static_cast<std::size_t>(made + d)]);
  });
}

#define ATTNSIM_INSTANTIATE(T, Expanded)                                                \
  template void expand(const expand_shape&, tensor_view<const T>, tensor_view<const T>, \
                       tensor_view<Expanded>, tensor_view<Expanded>);
ATTNSIM_EACH_TYPE_PAIR(ATTNSIM_INSTANTIATE)
#undef ATTNSIM_INSTANTIATE

}  // namespace attnsim::kernels::cpu
