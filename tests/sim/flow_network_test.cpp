#include "sim/flow_network.hpp"

#include <random>
#include <stdexcept>

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/sim/checked_network.hpp"

namespace attnsim {
namespace flow_network_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr picoseconds ns = 1000;
constexpr double gb = 1e9;  // bytes/s: 1 byte a nanosecond

struct network : flow_network {
  using flow_network::flow_network;

  path_id path(std::vector<link_use> links) { return add_path(links); }
  std::vector<flow_tag> completed(picoseconds now) {
    std::vector<flow_tag> done;
    complete(now, done);
    return done;
  }
};

TEST(flow_network, one_flow_takes_bytes_over_capacity) {
  // 64 MiB at 50e9 B/s: 67108864 / 50e9 = 1342177.28 ns. Cut-through: the second link adds nothing.
  network n({50e9, 50e9});
  n.start(0, 7, n.path({{0}, {1}}), 67108864);
  EXPECT_EQ(n.next_completion(), 1342177280);
  EXPECT_THAT(n.completed(1342177280), ElementsAre(7));
  EXPECT_EQ(n.next_completion(), never);
  EXPECT_EQ(n.flows(), 0u);
}

TEST(flow_network, flows_slow_each_other_while_they_meet) {
  // 1 byte/ns. a (100 bytes) from 0, b (100 bytes) from 50: a has 50 left, at half speed until 150.
  // b has then moved 50 and goes on alone until 200.
  network n({gb});
  const path_id path = n.path({{0}});
  n.start(0, 1, path, 100);
  n.start(50 * ns, 2, path, 100);
  EXPECT_EQ(n.rate(path), gb / 2);
  EXPECT_EQ(n.next_completion(), 150 * ns);
  EXPECT_THAT(n.completed(150 * ns), ElementsAre(1));
  EXPECT_EQ(n.rate(path), gb);
  EXPECT_EQ(n.next_completion(), 200 * ns);
  EXPECT_THAT(n.completed(200 * ns), ElementsAre(2));
  EXPECT_EQ(n.rate(path), 0);
}

TEST(flow_network, an_end_lets_flows_elsewhere_change_in_turn) {
  // Link 0 (2 bytes/ns): a, b. Link 1 (10): b, c. a = b = 1, c = 9 bytes/ns.
  // a (100 bytes) ends at 100; then b = 2, c = 8. c (1700): 900 by then, 800 / 8 = 100 more: 200.
  network n({2 * gb, 10 * gb});
  const path_id a = n.path({{0}}), b = n.path({{0}, {1}}), c = n.path({{1}});
  n.start(0, 'a', a, 100);
  n.start(0, 'b', b, 1e6);
  n.start(0, 'c', c, 1700);
  EXPECT_THAT(n.completed(n.next_completion()), ElementsAre('a'));
  EXPECT_EQ(n.rate(b), 2 * gb);
  EXPECT_EQ(n.rate(c), 8 * gb);
  EXPECT_EQ(n.next_completion(), 200 * ns);
}

TEST(flow_network, limits_bind_and_release) {
  // 10 bytes/ns; a limited to 1 byte/ns, b gets 9. b (900 bytes) ends at 100, a (150) at 150: no
  // faster alone.
  network n({10 * gb});
  const path_id path = n.path({{0}});
  n.start(0, 1, path, 150, gb);
  n.start(0, 2, path, 900);
  EXPECT_EQ(n.rate(path, gb), gb);
  EXPECT_EQ(n.rate(path), 9 * gb);
  EXPECT_THAT(n.completed(100 * ns), ElementsAre(2));
  EXPECT_THAT(n.completed(150 * ns), ElementsAre(1));
}

TEST(flow_network, limited_flows_need_no_links) {
  network n({gb});
  const path_id path = n.path({});
  n.start(0, 1, path, 100, gb / 2);
  n.start(0, 2, path, 100, gb / 2);  // the limit is each flow's own
  EXPECT_EQ(n.next_completion(), 200 * ns);
  EXPECT_THAT(n.completed(200 * ns), ElementsAre(1, 2));
}

TEST(flow_network, nothing_to_move_completes_at_once) {
  network n({gb});
  const path_id nowhere = n.path({}), path = n.path({{0}});
  n.start(5, 1, nowhere, 1e30);
  n.start(5, 2, path, 0);
  EXPECT_EQ(n.next_completion(), 5);
  EXPECT_THAT(n.completed(5), ElementsAre(1, 2));
  EXPECT_EQ(n.next_completion(), never);
}

TEST(flow_network, flows_that_end_together_come_in_the_order_of_their_starts) {
  network n(std::vector<double>(3, gb));
  const path_id paths[] = {n.path({{0}}), n.path({{1}}), n.path({{2}})};
  for (const flow_tag tag : {2, 0, 1}) n.start(0, 10 + tag, paths[tag], 100);
  EXPECT_THAT(n.completed(100 * ns), ElementsAre(12, 10, 11));
}

TEST(flow_network, ends_and_starts_of_one_instant_change_no_rate_between) {
  // The successor takes over at the same instant: b never sees the link free.
  network n({gb});
  const path_id a = n.path({{0}}), b = n.path({{0, 1}});
  n.start(0, 1, a, 50);
  n.start(0, 2, b, 100);
  EXPECT_THAT(n.completed(100 * ns), ElementsAre(1));
  n.start(100 * ns, 3, a, 50);
  EXPECT_EQ(n.next_completion(), 200 * ns);
  EXPECT_THAT(n.completed(200 * ns), ElementsAre(2, 3));
}

TEST(flow_network, weights_are_carried_as_bytes_of_the_link) {
  // r = min(1 / 1, 4 / 3) bytes/ns: 100 bytes in 100 ns, 100 on link 0 and 300 on link 1. Half way:
  // 50 and 150.
  network n({gb, 4 * gb});
  n.start(0, 1, n.path({{0}, {1, 3}}), 100);
  EXPECT_THAT(n.bytes_carried(50 * ns), ElementsAre(50, 150));
  EXPECT_THAT(n.completed(100 * ns), ElementsAre(1));
  EXPECT_THAT(n.bytes_carried(500 * ns), ElementsAre(100, 300));
}

TEST(flow_network, records_load_over_time) {
  network n({gb, 3 * gb});
  const path_id path = n.path({{0}, {1, 2}});
  n.record(1);
  n.start(10 * ns, 1, path, 100);
  n.completed(110 * ns);
  const auto samples = n.recorded(1);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].since, 0);
  EXPECT_EQ(samples[0].rate, 0);
  EXPECT_EQ(samples[1].since, 10 * ns);
  EXPECT_DOUBLE_EQ(samples[1].rate, 2 * gb);
  EXPECT_EQ(samples[2].since, 110 * ns);
  EXPECT_EQ(samples[2].rate, 0);
}

TEST(flow_network, refuses_wrong_use) {
  EXPECT_ERROR(network({0}), std::invalid_argument,
               "link 0: capacity 0 B/s: expected positive and finite");
  network n({gb});
  const path_id path = n.path({{0}});
  EXPECT_ERROR(n.path({{3}}), std::invalid_argument, "path: link 3: expected a number below 1");
  EXPECT_ERROR(n.start(0, 0, 9, 1), std::invalid_argument,
               "flow_network: path 9: expected a number below 1");
  EXPECT_ERROR(n.start(0, 0, path, -1), std::invalid_argument,
               "flow_network: flow of -1 B: expected a finite number, 0 or more");
  EXPECT_ERROR(n.start(0, 0, path, 1, 0), std::invalid_argument,
               "flow: rate limit 0 B/s: expected positive");
  EXPECT_ERROR(n.record(1), std::invalid_argument,
               "flow_network: link 1: expected a number below 1");
  n.start(10, 0, path, 1);
  EXPECT_ERROR(n.start(9, 0, path, 1), std::invalid_argument,
               "flow_network: time 9 ps: expected 10 ps or later");
  EXPECT_ERROR(n.start(2000, 0, path, 1), std::invalid_argument,
               "flow_network: time 2000 ps: flows complete at 1010 ps first");
}

TEST(flow_network, equal_all_to_all_ends_at_one_instant) {
  // 31 flows share each link: 31 * 2^20 / 50e9 s.
  constexpr std::uint32_t hosts = 32;
  network n(std::vector<double>(2 * hosts, 50e9));
  for (std::uint32_t i = 0; i < hosts; ++i) {
    for (std::uint32_t j = 0; j < hosts; ++j) {
      if (i != j) n.start(0, i * hosts + j, n.path({{i}, {hosts + j}}), 1 << 20);
    }
  }
  const picoseconds end = n.next_completion();
  EXPECT_EQ(end, 650117120);
  EXPECT_EQ(n.completed(end).size(), hosts * (hosts - 1));
  EXPECT_EQ(n.next_completion(), never);
}

TEST(flow_network, counts_stay_exact_on_a_link_that_never_rests) {
  // Two flows take turns so that the link is busy for 10 000 s: 1 byte/ns shared, each flow lasts 2
  // s of which the other one's start and end split the last picosecond.
  network n({gb});
  const path_id path = n.path({{0}});
  n.start(0, 0, path, 1e9);
  n.start(0, 1, path, 2e9);
  picoseconds now = 0;
  for (flow_tag tag = 2; tag < 10000; ++tag) {
    now = n.next_completion();
    ASSERT_EQ(now, static_cast<picoseconds>(tag - 1) * 2'000'000'000'000);
    ASSERT_THAT(n.completed(now), ElementsAre(tag - 2));
    n.start(now, tag, path, 2e9);
  }
}

/// Random systems with many ties: few distinct capacities, sizes, weights and times.
struct random_system {
  std::mt19937 engine;
  bool round_numbers = engine() % 2;

  std::uint32_t below(std::uint32_t n) { return engine() % n; }
  double number(double scale) {
    if (round_numbers) return scale * (1 + below(3));
    return scale * std::uniform_real_distribution(0.1, 10.0)(engine);
  }
  double weight() { return below(3) > 0 ? 1 : number(0.5); }
  std::vector<link_use> path(std::uint32_t links) {
    std::vector<link_use> path;
    const std::uint32_t longest = below(8) ? 5 : 40;  // rarely all links at once, as a collective
    for (std::uint32_t hops = below(longest); hops > 0; --hops)
      path.push_back({below(links), weight()});
    return path;
  }

  std::string run() {
    const std::uint32_t links = 1 + below(16);
    std::vector<double> capacities;
    for (std::uint32_t i = 0; i < links; ++i) capacities.push_back(number(gb));
    checked_network n(capacities);
    const std::uint32_t paths = 1 + below(20);
    for (std::uint32_t i = 0; i < paths; ++i) n.add_path(path(links));
    for (std::uint32_t flows = below(60); flows > 0 || n.flows() > 0;) {
      while (flows > 0 && below(4) > 0) {
        n.start(below(paths), below(20) ? number(1000) : 0, below(5) ? unlimited : number(gb / 4));
        --flows;
      }
      n.go(below(3) ? never : static_cast<picoseconds>(number(100 * ns)));
      if (!n.difference().empty()) return n.difference();
    }
    return "";
  }
};

TEST(flow_network, agrees_with_the_plain_solver_on_random_systems) {
  for (std::uint32_t seed = 0; seed < 5000; ++seed) {
    random_system system{std::mt19937(seed)};
    ASSERT_EQ(system.run(), "") << "seed " << seed;
  }
}

/// Unequal all to all: levels that nearly tie, and change owners all the time.
TEST(flow_network, agrees_with_the_plain_solver_on_an_all_to_all) {
  for (const std::uint32_t hosts : {3u, 6u, 10u}) {
    checked_network n(std::vector<double>(2 * hosts, 50e9));
    for (std::uint32_t i = 0; i < hosts; ++i) {
      for (std::uint32_t d = 1; d < hosts; ++d) {
        const double factor = 1 + (i * 7919 + d * 104729) % 1000 / 1000.0;
        n.start(n.add_path({{i}, {hosts + (i + d) % hosts}}), 1048576 * factor);
      }
    }
    while (n.flows() > 0 && n.difference().empty()) n.go();
    EXPECT_EQ(n.difference(), "") << hosts << " hosts";
  }
}

}  // namespace flow_network_test
}  // namespace attnsim
