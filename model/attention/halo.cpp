#include "model/attention/halo.hpp"

namespace attnsim {

halo halo_of(const attention& a, std::int64_t chunks) {
  if (a.window == 0) return {};
  const auto tokens = a.sequence / chunks, before = a.window - 1;
  if (before >= (chunks - 1) * tokens) return {chunks - 1, 0};
  return {before / tokens, before % tokens};
}

}  // namespace attnsim
