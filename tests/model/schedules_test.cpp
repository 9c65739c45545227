#include "model/schedule/algorithms/schedules.hpp"

#include <gtest/gtest.h>

#include "model/cost/workload.hpp"
#include "model/schedule/algorithms/mesh_steps.hpp"
#include "model/schedule/schedule_check.hpp"

namespace attnsim {
namespace {

attention problem(std::int64_t sequence, std::int64_t group_size,
                  mask_kind mask = mask_kind::full) {
  return {
      .heads = 8, .kv_heads = 8 / group_size, .head_dim = 16, .sequence = sequence, .mask = mask};
}

std::string label(const strategy& s, pass_kind pass) {
  return std::string(s.schedule) + " " + std::to_string(s.rows) + "x" + std::to_string(s.cols) +
         " U=" + std::to_string(s.ulysses) + " " + std::string(name_of(pass)) + " " +
         std::string(name_of(s.order)) + " " + std::string(name_of(s.tokens));
}

/// Every strategy that some algorithm takes on this many ranks.
std::vector<strategy> strategies(int ranks, const attention& a) {
  std::vector<strategy> result;
  for (const auto& algorithm : algorithms()) {
    const std::string name(algorithm.name);
    for (const int degree : ulysses_degrees({.schedule = name}, a, ranks)) {
      for (const auto& [rows, cols] : grids_of(ranks / degree)) {
        for (const auto order : {kv_order::direct, kv_order::transposed}) {
          for (const auto reduction : {reduction_kind::ring, reduction_kind::all_to_all}) {
            const auto format = precision(result.size() % 2);
            const strategy s{.schedule = name,
                             .rows = rows,
                             .cols = cols,
                             .ulysses = degree,
                             .tokens = token_layout::striped,
                             .order = order,
                             .reduction = reduction,
                             .partials = format,
                             .gradients = format};
            const bool differs = name == "attention2d" || reduction == reduction_kind::ring;
            if (differs && refusal(s, a).empty()) result.push_back(s);
          }
        }
      }
    }
  }
  return result;
}

TEST(schedules, compute_every_pair_once) {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 9, 12, 16}) {
    for (const auto mask : {mask_kind::full, mask_kind::causal}) {
      const auto a = problem(ranks * 4, mask == mask_kind::full ? 1 : 4, mask);
      for (const auto& s : strategies(ranks, a)) {
        for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
          EXPECT_NO_THROW(check(make_schedule(s, a, pass))) << label(s, pass);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attnsim
