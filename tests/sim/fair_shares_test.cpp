#include "sim/fair_shares.hpp"

#include <gmock/gmock.h>

namespace attnsim {
namespace fair_shares_test {

struct system : fair_shares {
  using fair_shares::fair_shares;

  bundle_id add(std::vector<link_use> path, std::uint32_t flows, double limit = unlimited) {
    const bundle_id id = add_bundle(path, limit);
    set_flows(id, flows);
    return id;
  }
  double rate(bundle_id id) const { return level(owner(id)); }
};

TEST(fair_shares, a_bundle_counts_as_its_flows) {
  // 3 a + b = 8, a = b.
  system s(std::vector{8.0});
  const bundle_id a = s.add({{0}}, 3);
  const bundle_id b = s.add({{0}}, 1);
  s.solve();
  EXPECT_EQ(s.rate(a), 2);
  EXPECT_EQ(s.rate(b), 2);
  EXPECT_EQ(s.load(0), 8);
}

TEST(fair_shares, a_limit_is_per_flow) {
  // 3 flows of 1 leave 8 - 3 to b.
  system s(std::vector{8.0});
  const bundle_id a = s.add({{0}}, 3, 1);
  const bundle_id b = s.add({{0}}, 1);
  s.solve();
  EXPECT_EQ(s.rate(a), 1);
  EXPECT_EQ(s.rate(b), 5);
  EXPECT_NE(s.owner(a), 0u);  // but the private link of its limit
  EXPECT_EQ(s.owner(b), 0u);
}

TEST(fair_shares, a_solve_reports_only_what_it_touched) {
  // Two pairs of links that share no flow, a chain of levels in the first: link 0 (2): a, b; link 1
  // (10): b, c.
  system s(std::vector<double>{2, 10, 5, 5});
  const bundle_id a = s.add({{0}}, 1);
  const bundle_id b = s.add({{0}, {1}}, 1);
  const bundle_id c = s.add({{1}}, 1);
  const bundle_id d = s.add({{2}, {3}}, 1);
  s.solve();
  EXPECT_EQ(s.rate(b), 1);
  EXPECT_EQ(s.rate(c), 9);

  s.set_flows(c, 2);  // link 1 only: (10 - 1) / 2
  s.solve();
  EXPECT_EQ(s.changed().size(), 1u);
  EXPECT_EQ(s.rate(c), 4.5);

  s.set_flows(a, 0);  // b = 2, c = (10 - 2) / 2
  s.solve();
  EXPECT_EQ(s.changed().size(), 2u);
  EXPECT_EQ(s.owner(a), fair_shares::none);
  EXPECT_EQ(s.rate(b), 2);
  EXPECT_EQ(s.rate(c), 4);
  EXPECT_EQ(s.rate(d), 5);
}

TEST(fair_shares, the_region_grows_where_a_level_falls_below_a_faster_bundle) {
  // Link 0 (4): a. Link 1 (10): a, b, c. Link 2 (3): b, d, and link 3 (20): c, e.
  // First a alone on link 1: 4. With b and c: b = d = 1.5, c = 10 - 4 - 1.5 = 4.5, e = 15.5.
  // Then 9 more flows like c: link 1 fills at (10 - 1.5) / 11 = 17/22 < 1.5, so b is held back
  // there as well: 10 / 12 = 5/6, and d = 3 - 5/6, e = 20 - 10 * 5/6.
  system s(std::vector<double>{4, 10, 3, 20});
  const bundle_id a = s.add({{0}, {1}}, 1);
  const bundle_id b = s.add({{1}, {2}}, 1);
  const bundle_id c = s.add({{1}, {3}}, 1);
  const bundle_id d = s.add({{2}}, 1);
  const bundle_id e = s.add({{3}}, 1);
  s.solve();
  EXPECT_EQ(s.rate(a), 4);
  EXPECT_EQ(s.rate(b), 1.5);
  EXPECT_EQ(s.rate(c), 4.5);
  EXPECT_EQ(s.rate(e), 15.5);

  s.set_flows(c, 10);
  s.solve();
  EXPECT_DOUBLE_EQ(s.rate(a), 5.0 / 6);
  EXPECT_DOUBLE_EQ(s.rate(b), 5.0 / 6);
  EXPECT_DOUBLE_EQ(s.rate(c), 5.0 / 6);
  EXPECT_DOUBLE_EQ(s.rate(d), 3 - 5.0 / 6);
  EXPECT_DOUBLE_EQ(s.rate(e), 20 - 50.0 / 6);
}

TEST(fair_shares, returns_to_exactly_nothing) {
  system s(std::vector<double>{1, 1.0 / 3, 0.7});
  std::vector<bundle_id> bundles;
  for (int i = 1; i <= 100; ++i) bundles.push_back(s.add({{0, 1.0 / i}, {1}, {2, 0.1 * i}}, i));
  s.solve();
  for (const bundle_id id : bundles) {
    s.set_flows(id, 0);
    s.solve();
  }
  for (link_id link = 0; link < 3; ++link) {
    EXPECT_EQ(s.load(link), 0);
    EXPECT_EQ(s.level(link), unlimited);
  }
}

TEST(fair_shares, lists_take_on_weights_and_other_lengths) {
  // Links 0 (12), 1 (100), 2 (100), 3 (100). Single flows of two links: 12 / 2 each.
  system s(std::vector<double>{12, 100, 100, 100});
  const bundle_id a = s.add({{0}, {1}}, 1);
  const bundle_id b = s.add({{0}, {2}}, 1);
  s.solve();
  EXPECT_EQ(s.rate(a), 6);

  s.set_flows(a, 2);  // 12 / 3
  s.solve();
  EXPECT_EQ(s.rate(a), 4);
  EXPECT_EQ(s.load(1), 8);

  const bundle_id c = s.add({{0, 0.5}, {2, 2}, {3}}, 2);  // 12 / (2 + 1 + 2 * 0.5)
  const bundle_id d = s.add({{0}}, 1, 1);                 // 1 at most: (12 - 1) / 4
  s.solve();
  EXPECT_EQ(s.rate(c), 2.75);
  EXPECT_EQ(s.rate(d), 1);
  EXPECT_EQ(s.load(0), 12);
  EXPECT_EQ(s.load(1), 5.5);
  EXPECT_EQ(s.load(2), 2.75 + 2 * 2 * 2.75);
  EXPECT_EQ(s.load(3), 5.5);

  for (const bundle_id id : {a, c, d}) s.set_flows(id, 0);
  s.solve();
  EXPECT_EQ(s.rate(b), 12);
}

TEST(fair_shares, a_falling_level_finds_a_bundle_that_was_slower_than_it) {
  // Link 0 (10): a and b; link 1 (4): a. So a = 4, b = 6. With two flows like b link 0 holds all
  // back at 10 / 3 < 4. With one again all is as before.
  system s(std::vector<double>{10, 4});
  const bundle_id a = s.add({{0}, {1}}, 1);
  const bundle_id b = s.add({{0}}, 1);
  s.solve();
  EXPECT_EQ(s.rate(a), 4);
  EXPECT_EQ(s.rate(b), 6);
  s.set_flows(b, 2);  // 10 / 3 < 4
  s.solve();
  EXPECT_DOUBLE_EQ(s.rate(a), 10.0 / 3);
  EXPECT_DOUBLE_EQ(s.rate(b), 10.0 / 3);
  s.set_flows(b, 1);
  s.solve();
  EXPECT_EQ(s.rate(a), 4);
  EXPECT_EQ(s.rate(b), 6);
}

TEST(fair_shares, equal_flows_have_bit_equal_rates) {
  // All to all on a star of 101 hosts without the pairs i -> i + 7: unequal, but symmetric in pairs
  // of links.
  constexpr std::uint32_t hosts = 101;
  system s(std::vector<double>(2 * hosts, 50e9 / 3));
  std::vector<bundle_id> bundles;
  for (std::uint32_t i = 0; i < hosts; ++i) {
    for (std::uint32_t j = 0; j < hosts; ++j) {
      if (i != j && j != (i + 7) % hosts) bundles.push_back(s.add({{i}, {hosts + j}}, 1));
    }
  }
  s.solve();
  for (const bundle_id id : bundles) ASSERT_EQ(s.rate(id), s.rate(bundles.back()));
}

}  // namespace fair_shares_test
}  // namespace attnsim
