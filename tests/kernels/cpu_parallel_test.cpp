#include "kernels/cpu/parallel.hpp"

#include <vector>

#include <gmock/gmock.h>

namespace attnsim::kernels::cpu {
namespace cpu_parallel_test {

using testing::Each;

TEST(parallel_for, visits_every_index_once) {
  for (const int threads : {0, 1, 3, 50}) {
    std::vector<int> visits(40);
    parallel_for(40, threads, [&](std::int64_t i) { ++visits[i]; });
    EXPECT_THAT(visits, Each(1)) << threads;
  }
  parallel_for(0, 2, [](std::int64_t) { FAIL(); });
}

}  // namespace cpu_parallel_test
}  // namespace attnsim::kernels::cpu
