#include "model/limit/crossing.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>

namespace attnsim {
namespace crossing_test {

using ::testing::DoubleNear;
using ::testing::Ge;

divided_heads halves(bool causal) {
  return {
      .units = 1, .row = 2, .column = 2, .rows = 8, .columns = 8, .share = 0.5, .causal = causal};
}

TEST(crossing, halves_of_a_head_exchange_it_once_where_all_see_all) {
  // Each half gives the other its four columns (or rows): 2 x 4 x 2 bytes, whoever computes.
  EXPECT_THAT(least_crossing(halves(false), 0), DoubleNear(16, 1e-12));
}

TEST(crossing, under_a_causal_mask_one_half_sees_the_other) {
  // Each token of one half and one of the other see each other one way: 4 x 2 bytes.
  EXPECT_THAT(least_crossing(halves(true), 0), DoubleNear(8, 1e-12));
}

TEST(crossing, columns_are_shared_by_a_groups_query_heads) {
  auto d = halves(false);
  d.group = 4;
  d.row = 4 * d.row;
  EXPECT_THAT(least_crossing(d, 0), DoubleNear(2 * 4 * 2, 1e-12)) << "all columns, no rows";
}

TEST(crossing, counts_the_pairs_of_all_heads) {
  EXPECT_EQ(halves(false).pairs(), 64);
  EXPECT_EQ(halves(true).pairs(), 36);
}

/// Every way to give the visible pairs of a head of n tokens to A or B, for every choice of A's tokens; the least of
/// cost - price x A's pairs.
double by_trial(int n, int in_a, const divided_heads& d, double price) {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n && (!d.causal || j <= i); ++j) pairs.emplace_back(i, j);
  }
  double least = 1e300;
  for (unsigned home = 0; home < 1u << n; ++home) {
    if (std::popcount(home) != in_a) continue;
    for (unsigned work = 0; work < 1u << pairs.size(); ++work) {
      unsigned rows = 0, columns = 0;  // away from home somewhere
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        const bool here = work >> p & 1;
        const auto [i, j] = pairs[p];
        if (here != (home >> i & 1)) rows |= 1u << i;
        if (here != (home >> j & 1)) columns |= 1u << j;
      }
      least = std::min(least, std::popcount(rows) * d.row + std::popcount(columns) * d.column -
                                  price * std::popcount(work));
    }
  }
  return least;
}

TEST(crossing, no_division_of_a_small_heads_pairs_costs_less) {
  for (const bool causal : {false, true}) {
    const int n = causal ? 4 : 3;
    for (int in_a = 1; in_a < n; ++in_a) {
      for (const double column : {0.5, 1.0, 3.0}) {
        for (const double price : {0.0, 0.1, 0.3, 0.5, 0.8, 1.2, 2.0, 5.0}) {
          const divided_heads d{.units = 1,
                                .row = 1,
                                .column = column,
                                .rows = static_cast<double>(n),
                                .columns = static_cast<double>(n),
                                .share = static_cast<double>(in_a) / n,
                                .causal = causal};
          EXPECT_THAT(by_trial(n, in_a, d, price) + 1e-9, Ge(least_crossing(d, price)))
              << causal << " " << in_a << " " << column << " " << price;
        }
      }
    }
  }
}

}  // namespace crossing_test
}  // namespace attnsim
