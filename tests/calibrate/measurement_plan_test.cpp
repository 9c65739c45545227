#include "calibrate/measurement_plan.hpp"

#include <gmock/gmock.h>

#include <set>

namespace attnsim {
namespace measurement_plan_test {

using testing::Each;
using testing::IsEmpty;
using testing::VariantWith;

std::set<std::string> described(const measurement_request& r) {
  std::set<std::string> lines;
  for (const auto& p : measurement_plan(r)) lines.insert(describe(p));
  return lines;
}

TEST(measurement_plan, has_no_point_twice_and_none_held_out_that_is_fitted) {
  for (const auto effort : {effort_kind::quick, effort_kind::full}) {
    measurement_request r{
        .effort = effort,
        .kernels = {{.name = "fast"}, {.name = "slow to start", .prepares_shapes = true}},
        .ranks = 4};
    const auto fit = described(r);
    EXPECT_EQ(measurement_plan(r).size(), fit.size());
    r.set = point_set::held_out;
    const auto held_out = described(r);
    EXPECT_EQ(measurement_plan(r).size(), held_out.size());
    std::vector<std::string> both;
    std::set_intersection(fit.begin(), fit.end(), held_out.begin(), held_out.end(),
                          std::back_inserter(both));
    EXPECT_THAT(both, IsEmpty());
  }
}

TEST(measurement_plan, of_one_rank_has_no_transfers) {
  for (const auto& p : measurement_plan({.kernels = {{.name = "fast"}}})) {
    EXPECT_FALSE(std::holds_alternative<transfer_point>(p)) << describe(p);
    EXPECT_FALSE(std::holds_alternative<overlap_point>(p)) << describe(p);
  }
}

TEST(measurement_plan, leaves_out_kinds_that_are_not_wanted) {
  EXPECT_THAT(measurement_plan(
                  {.kinds = {point_kind::transfer}, .kernels = {{.name = "fast"}}, .ranks = 2}),
              Each(VariantWith<transfer_point>(testing::_)));
}

/// Three kinds, three starts, and two lengths to fit; a rank alone has no exchanges, and threads on a host no gaps to tell.
TEST(measurement_plan, has_sequences_of_two_ranks_at_most) {
  const auto sequences = [](point_set set, int ranks, bool on_host) {
    return measurement_plan({.set = set,
                             .kinds = {point_kind::sequence},
                             .kernels = {{.name = "fast", .on_host = on_host}},
                             .ranks = ranks});
  };
  const auto fit = sequences(point_set::fit, 8, false);
  EXPECT_EQ(fit.size(), 3u * 3 * 2);
  for (const auto& p : fit) EXPECT_EQ(std::get<sequence_point>(p).members, 2) << describe(p);
  EXPECT_EQ(sequences(point_set::held_out, 8, false).size(), 3u * 3);
  EXPECT_EQ(sequences(point_set::fit, 1, false).size(), 3u * 2);
  EXPECT_THAT(sequences(point_set::fit, 8, true), IsEmpty());
}

/// To fit sizes in powers of two; of the others none is.
TEST(measurement_plan, draws_products_of_a_layer_s_sizes) {
  measurement_request r{.kinds = {point_kind::product}, .kernels = {{.name = "fast"}}};
  const auto power = [](std::int64_t x) { return (x & (x - 1)) == 0; };
  const auto fit = measurement_plan(r);
  EXPECT_EQ(fit.size(), 120u);
  for (const auto& point : fit) {
    const auto& p = std::get<product_point>(point);
    EXPECT_TRUE(power(p.rows) && power(p.cols) && power(p.inner)) << describe(point);
  }
  r.set = point_set::held_out;
  const auto held_out = measurement_plan(r);
  EXPECT_EQ(held_out.size(), 200u);
  for (const auto& point : held_out) {
    const auto& p = std::get<product_point>(point);
    EXPECT_FALSE(power(p.rows) || power(p.cols) || power(p.inner)) << describe(point);
  }
}

TEST(measurement_plan, has_elementwise_operations_of_a_layer_s_sizes) {
  measurement_request r{.kinds = {point_kind::elementwise}, .kernels = {{.name = "fast"}}};
  const auto fit = measurement_plan(r);
  EXPECT_EQ(fit.size(), 6u * 6 * 3);
  EXPECT_EQ(fit.front(),
            measured_point(elementwise_point{"fast", elementwise_kind::norm, 1024, 2048}));
  r.set = point_set::held_out;
  const auto held_out = measurement_plan(r);
  EXPECT_EQ(held_out.size(), 6u * 2 * 3);
  EXPECT_EQ(held_out.back(),
            measured_point(elementwise_point{"fast", elementwise_kind::cast, 12288, 7168}));
}

/// 6 = 2 x 3: rows and columns of 1x6, 2x3, 3x2 and 6x1.
TEST(measurement_plan, covers_rows_and_columns_of_every_grid) {
  std::set<std::pair<int, int>> groups;
  for (const auto& p : measurement_plan({.ranks = 6})) {
    const auto& t = std::get<transfer_point>(p);
    groups.emplace(t.members, t.stride);
  }
  EXPECT_EQ(groups, (std::set<std::pair<int, int>>{{2, 1}, {2, 3}, {3, 1}, {3, 2}, {6, 1}}));
}

TEST(measurement_plan, keeps_to_the_largest_transfer) {
  for (const auto& p :
       measurement_plan({.kernels = {{.name = "fast"}}, .ranks = 2, .largest_transfer = 1 << 20})) {
    if (const auto* t = std::get_if<transfer_point>(&p)) {
      EXPECT_LE(t->bytes, 1 << 20);
    }
    if (const auto* o = std::get_if<overlap_point>(&p)) {
      EXPECT_LE(o->transfer.bytes, 1 << 20);
    }
  }
}

}  // namespace measurement_plan_test
}  // namespace attnsim
