#include "kernels/cpu/stream.hpp"

#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>

namespace attnsim::kernels::cpu {
namespace cpu_stream_test {

using testing::ElementsAre;
using testing::ThrowsMessage;

class stream_of_kind : public testing::TestWithParam<stream_kind> {};
INSTANTIATE_TEST_SUITE_P(both, stream_of_kind,
                         testing::Values(stream_kind::threaded, stream_kind::immediate));

TEST_P(stream_of_kind, runs_work_in_order) {
  stream s(GetParam());
  std::vector<int> done;
  for (int i = 0; i < 4; ++i) s.enqueue([&done, i] { done.push_back(i); });
  s.synchronize();
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3));
}

TEST_P(stream_of_kind, reports_the_first_failure_once_and_goes_on) {
  stream s(GetParam());
  bool ran = false;
  s.enqueue([] { throw std::runtime_error("first"); });
  s.enqueue([] { throw std::runtime_error("second"); });
  s.enqueue([&] { ran = true; });
  EXPECT_THAT([&] { s.synchronize(); }, ThrowsMessage<std::runtime_error>("first"));
  EXPECT_TRUE(ran);
  EXPECT_NO_THROW(s.synchronize());
}

TEST_P(stream_of_kind, finishes_before_it_goes) {
  int done = 0;
  {
    stream s(GetParam());
    for (int i = 0; i < 100; ++i) s.enqueue([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(stream, a_threaded_one_does_not_hold_up_its_caller) {
  std::mutex gate;
  stream s(stream_kind::threaded);
  std::unique_lock closed(gate);
  s.enqueue([&] { const std::lock_guard pass(gate); });
  closed.unlock();
  s.synchronize();
}

}  // namespace cpu_stream_test
}  // namespace attnsim::kernels::cpu
