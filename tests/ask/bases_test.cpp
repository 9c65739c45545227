#include "ask/bases.hpp"

#include <gtest/gtest.h>

#include "ask/question.hpp"

namespace attnsim::ask {
namespace {

question asked_of(const std::string& cluster) {
  return {.cluster = cluster, .ranks = 8, .sequence = 8192, .heads = 8};
}

TEST(bases_of, kernels_transports_with_links_and_the_host) {
  auto q = asked_of("dgx-h100");
  q.overrides.host = "pytorch";
  EXPECT_EQ(
      text_of(bases_of(cluster_of(q))),
      "kernel fa3 published; kernel fa3 in fp8 published; kernel cudnn-9 published; kernel fa2 "
      "published; kernel sdpa "
      "published; kernel attnsim-cuda measured here; kernel cudnn-9.19 measured here; kernel "
      "cudnn-9.19 in fp8 published; nvlink "
      "published, rings of two measured here; pcie measured here; network published; host pytorch "
      "measured here");
}

TEST(bases_of, a_device_that_nobody_measured) {
  const auto q = asked_of("mi300x-8");
  EXPECT_EQ(text_of(bases_of(cluster_of(q))),
            "kernels assumed: a share of the peak; nvlink assumed; pcie assumed; network assumed");
}

TEST(bases_of, the_kernel_of_a_prediction) {
  auto q = asked_of("dgx-h100");
  const auto c = cluster_of(q);
  EXPECT_EQ(
      text_of(bases_of(c, predict(q, c))),
      "kernel fa3 published; nvlink published, rings of two measured here; pcie measured here; "
      "network published");
  q.kernel = "cudnn";
  EXPECT_EQ(bases_of(c, predict(q, c)).front().figures, "kernel cudnn-9.19");
}

std::string kernels_of(question q) {
  q.dtype = data_type::fp8;
  q.pass = pass_kind::forward;
  const auto c = cluster_of(q);
  const auto first = bases_of(c, predict(q, c)).front();
  return first.figures + " " + first.basis;
}

TEST(bases_of, fp8_of_its_own) {
  auto q = asked_of("dgx-h100");
  EXPECT_EQ(kernels_of(q), "kernel fa3 in fp8 published");
  q.kernel = "cudnn";
  EXPECT_EQ(kernels_of(q), "kernel cudnn-9.19 in fp8 published");
  q.kernel = "fa2";
  EXPECT_EQ(kernels_of(q), "kernels in fp8 assumed: a share of the peak");
  EXPECT_EQ(kernels_of(asked_of("dgx-b200")), "kernel cudnn-9 in fp8 assumed");
  auto other = asked_of("gb200-nvl72");
  other.overrides.device = "gb200";
  EXPECT_EQ(kernels_of(other), "kernel cudnn-9.22 in fp8 published");
  EXPECT_EQ(kernels_of(asked_of("mi300x-8")), "kernels in fp8 assumed: a share of the peak");
}

/// The rates of fp8 alone are no kernel of other types.
TEST(bases_of, a_kernel_of_fp8_alone) {
  auto q = asked_of("gb200-nvl72");
  q.overrides.device = "gb200";
  const auto c = cluster_of(q);
  EXPECT_EQ(bases_of(c, predict(q, c)).front().basis, "assumed: a share of the peak");
}

}  // namespace
}  // namespace attnsim::ask
