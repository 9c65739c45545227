#include "sim/private_route.hpp"

#include <gmock/gmock.h>

namespace attnsim {
namespace private_route_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr picoseconds ns = 1000;
constexpr double gb = 1e9;  // bytes/s: 1 byte a nanosecond

std::vector<flow_tag> completed(private_route& r, picoseconds now) {
  std::vector<flow_tag> done;
  r.complete(now, done);
  return done;
}

// 1 byte/ns. a (100 bytes) from 0, b (100 bytes) from 50: a has 50 left, at half speed until 150.
// b has then moved 50 and goes on alone until 200.
TEST(private_route, flows_share_equally_while_they_meet) {
  private_route r(gb);
  r.start(0, 'a', 100);
  EXPECT_EQ(r.next_completion(), 100 * ns);
  r.start(50 * ns, 'b', 100);
  EXPECT_EQ(r.next_completion(), 150 * ns);
  EXPECT_THAT(completed(r, 150 * ns), ElementsAre('a'));
  EXPECT_EQ(r.next_completion(), 200 * ns);
  EXPECT_THAT(completed(r, 200 * ns), ElementsAre('b'));
  EXPECT_EQ(r.next_completion(), never);
  EXPECT_EQ(r.moved(), 200);
}

TEST(private_route, equal_flows_end_together_in_the_order_of_their_start) {
  private_route r(3 * gb);
  for (const flow_tag tag : {7, 3, 5}) r.start(0, tag, 100);
  EXPECT_EQ(r.next_completion(), 100 * ns);
  EXPECT_THAT(completed(r, 100 * ns), ElementsAre(7, 3, 5));
}

TEST(private_route, a_flow_of_no_bytes_ends_as_it_starts) {
  private_route r(gb);
  r.start(0, 1, 100);
  r.start(40 * ns, 2, 0);
  EXPECT_EQ(r.next_completion(), 40 * ns);
  EXPECT_THAT(completed(r, 40 * ns), ElementsAre(2));
  EXPECT_EQ(r.next_completion(), 100 * ns);
}

// The network's answer for the same flows.
TEST(private_route, agrees_with_the_network) {
  private_route r(gb / 3);
  flow_network n({gb});
  const link_use thrice[] = {{0, 3}};
  const auto path = n.add_path(thrice);
  const std::pair<picoseconds, double> starts[] = {{0, 1000}, {10, 777}, {999, 5}, {1700, 4321}};
  std::size_t next = 0;
  while (next < std::size(starts) || n.flows() > 0) {
    const auto start = next < std::size(starts) ? starts[next].first : never;
    ASSERT_EQ(r.next_completion(), n.next_completion());
    if (start <= r.next_completion()) {
      n.start(start, next, path, starts[next].second);
      r.start(start, next, starts[next].second);
      ++next;
      continue;
    }
    const auto now = r.next_completion();
    std::vector<flow_tag> done;
    n.complete(now, done);
    EXPECT_EQ(completed(r, now), done);
  }
}

}  // namespace private_route_test
}  // namespace attnsim
