#include "kernels/cpu/expand.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace attnsim::kernels::cpu {
namespace cpu_expand_test {

using testing::ElementsAre;
using testing::ThrowsMessage;

// Two latents of 2 elements and a rotary one: (1, 2, 9) and (3, 0, 8). One head whose keys are made of the first column, and whose
// values of the other two: (1, 2, 3) for the first element, (10, 20, 30) for the second.
TEST(expand, makes_keys_and_values_on_paper) {
  const std::vector<float> latent{1, 2, 9, 3, 0, 8}, expansion{1, 2, 3, 10, 20, 30};
  std::vector<float> key(4), value(4);
  expand<float, float>({.count = 2, .head_dim = 2, .v_head_dim = 2, .rank = 2, .rotary = 1},
                       {latent.data(), 6, 3, 3}, {expansion.data(), 6, 6, 6}, {key.data(), 4, 2, 2},
                       {value.data(), 4, 2, 2});
  EXPECT_THAT(key, ElementsAre(21, 9, 3, 8));
  EXPECT_THAT(value, ElementsAre(42, 63, 6, 9));
}

TEST(expand, refuses_more_rotary_elements_than_a_key_has) {
  EXPECT_THAT([] { check(expand_shape{.count = 1, .head_dim = 4, .rank = 1, .rotary = 4}); },
              ThrowsMessage<std::invalid_argument>("expansion: rotary is 4, expected 0 to 3"));
  EXPECT_THAT([] { check(expand_shape{.count = 1}); },
              ThrowsMessage<std::invalid_argument>("expansion: rank is 0, expected at least 1"));
}

}  // namespace cpu_expand_test
}  // namespace attnsim::kernels::cpu
