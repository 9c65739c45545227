// Runs every study once: what their figures must be by hand, and a guard against growing errors.
#include "reproduce/studies.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "reproduce/published.hpp"

namespace attnsim::reproduce {
namespace studies_test {

const result& result_of(std::string_view name) {
  static std::map<std::string, result, std::less<>> results;
  const auto found = results.find(name);
  if (found != results.end()) return found->second;
  return results.emplace(name, find_study(name).run()).first->second;
}

double predicted(const result& r, std::string_view figure) {
  for (const auto& p : r.points) {
    if (p.figure == figure) return p.predicted;
  }
  ADD_FAILURE() << "no figure " << figure;
  return 0;
}

double what_if_of(const result& r, std::string_view assumption, std::string_view figure) {
  for (const auto& w : r.what_ifs) {
    if (w.assumption == assumption && w.figure == figure) return w.predicted;
  }
  ADD_FAILURE() << "no " << figure << " under " << assumption;
  return 0;
}

/// A mean error may grow by a tenth of itself and, where it is next to nothing, by a thousandth.
TEST(studies, mean_errors_do_not_grow) {
  std::map<std::string, double> recorded;
  for (const auto& row : read_published("tests/reproduce/mean_errors.csv"))
    recorded[row.text("study") + "," + row.text("series")] = row.number("mean_error");
  std::string now;
  for (const auto& s : studies()) {
    for (const auto& e : errors_of(result_of(s.name).points)) {
      const auto key = fmt::format("{},{}", s.name, e.series);
      now += fmt::format("{},{:.4f}\n", key, e.mean);
      if (recorded.contains(key)) {
        EXPECT_LE(e.mean, 1.1 * recorded[key] + 0.001) << key;
      } else {
        ADD_FAILURE() << key << " is not recorded";
      }
      recorded.erase(key);
    }
  }
  for (const auto& [key, mean] : recorded)
    ADD_FAILURE() << key << " is recorded, but there is no such series";
  if (HasFailure()) std::cout << "mean errors now:\nstudy,series,mean_error\n" << now;
}

/// In units of q, E = 1: ring 92 on 16 ranks and 380 on 64, Attention2D 37 and 81 with the transpose; row statistics and
/// fixed costs take a few percent.
TEST(studies, bytes_alone_give_the_papers_ratios_on_nodes_of_one_gpu) {
  const auto& a100 = result_of("attention2d-a100");
  const auto* const alone = "one GPU a node: bytes of each GPU alone";
  EXPECT_NEAR(what_if_of(a100, alone, "mean of attention2d on 16 GPUs") / (92.0 / 37), 1, 0.05);
  EXPECT_NEAR(what_if_of(a100, alone, "mean of attention2d on 64 GPUs") / (380.0 / 81), 1, 0.05);
  EXPECT_NEAR(
      what_if_of(result_of("attention2d-h100"), "bytes alone", "largest speedup") / (380.0 / 81), 1,
      0.05);
}

/// With dK, dV of the ring in fp32 it moves 126 + 2 x 63 + 4 x 64 = 508 q.
TEST(studies, a_ring_with_fp32_gradients_moves_a_third_more) {
  EXPECT_NEAR(
      what_if_of(result_of("attention2d-h100"), "ring's gradients in fp32", "largest speedup") /
          (508.0 / 81),
      1, 0.05);
}

/// MHA, 256 ranks, fp32 partials and gradients, in units of q, l = 4 / (128 x 2) q:
/// ring     510 + 510 + 4 x 256 = 2044
/// tile 8x32  forward  7 + 2 x 31 + 7 (2 + l), backward 7 (2 + 2 l) + 2 x 31 + 7 x 2 + 4 x 31, together 297 + 21 l
TEST(studies, mesh_traffic_equals_the_formula) {
  const double l = 4.0 / (128 * 2);
  EXPECT_NEAR(predicted(result_of("mesh"), "traffic saved on 256 GPUs, largest"),
              1 - (297 + 21 * l) / 2044, 1e-6);
}

/// Half of the sizes are predicted from the others, so no prediction is the figure itself.
TEST(studies, kernel_rates_are_predicted_without_the_figure_itself) {
  const auto& points = result_of("flash-attention").points;
  const auto exact = std::count_if(points.begin(), points.end(),
                                   [](const point& p) { return std::abs(p.error()) < 1e-6; });
  EXPECT_EQ(exact, 0);
}

/// Two ranks, all-reduce: each sends half of the buffer twice, so time is bytes / (300 GB/s x 0.39) plus microseconds.
TEST(studies, all_reduce_of_two_ranks_runs_at_the_rate_of_their_link) {
  EXPECT_NEAR(predicted(result_of("nccl-tests"), "2x H100 NVLink bridge all-reduce"), 117, 0.2);
}

/// A ring of one has no layout: six times of the same question, 24.1295 to 31.3932, in the middle 25.2296 and 29.2492.
TEST(studies, times_published_more_than_once_are_held_against_their_median) {
  const auto& repeats = result_of("usp-pcie").repeats;
  const auto one = std::find_if(repeats.begin(), repeats.end(), [](const point& p) {
    return p.series == "A100 16384 tokens 32:32 heads of 32" &&
           p.figure == "ulysses 4 x ring 1 zigzag qkvpacked";
  });
  ASSERT_NE(one, repeats.end());
  EXPECT_DOUBLE_EQ(one->published, 24.1354);
  EXPECT_DOUBLE_EQ(one->predicted, (25.2296 + 29.2492) / 2);
}

/// Blocks of tokens x tokens of the last of four ranks: 3.5 contiguous, 2 zigzag; more of them among as many products have a higher
/// clock.
TEST(studies, a_layer_without_load_balance_computes_as_many_more_blocks) {
  const auto of_attention = [](std::string_view tokens) {
    for (const auto& p : result_of("torchtitan-layers").points) {
      if (p.series == "compiled attention" &&
          p.figure == fmt::format("one rank, cp 4, 32 K tokens, fa2-torch, allgather, {}", tokens))
        return p.predicted;
    }
    ADD_FAILURE() << tokens;
    return 0.0;
  };
  EXPECT_NEAR(of_attention("contiguous") / of_attention("zigzag"), 3.5 / 2, 0.12);
}

TEST(studies, nothing_on_64_gpus_is_fitted) {
  for (const auto& p : result_of("attention2d-a100").points) {
    if (p.fitted) {
      EXPECT_THAT(p.figure, testing::HasSubstr("16 GPUs"));
    }
  }
}

}  // namespace studies_test
}  // namespace attnsim::reproduce
