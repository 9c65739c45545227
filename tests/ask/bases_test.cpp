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
      "kernel fa3 published; kernel cudnn-9 published; kernel fa2 published; kernel sdpa "
      "published; kernel attnsim-cuda measured here; kernel cudnn-9.19 measured here; nvlink "
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

}  // namespace
}  // namespace attnsim::ask
