// Launch order and channels: attention beside one exchange of two H100, as measured elsewhere (../shared/measured,
// overlap_2xH100_nvlink.csv), predicted from a profile fitted to our own measurements (tests/gpu/results) and published
// FlashAttention-2 rates.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "calibrate/calibration.hpp"
#include "calibrate/predicted.hpp"
#include "model/cluster.hpp"
#include "reproduce/published.hpp"

namespace attnsim {
namespace {

const std::string table = "../shared/measured/overlap_2xH100_nvlink.csv";
const std::string results = "tests/gpu/results/";

struct observed {
  std::string transport;
  overlap_point what;
  double time = 0;  ///< seconds
};

/// Two to a row: launched first and second.
std::vector<observed> read_table() {
  std::vector<observed> all;
  for (const auto& row : reproduce::read_published(table)) {
    overlap_point p{.kernel = {.kernel = row.text("kernel") == "flash2" ? "fa2" : "cudnn",
                               .heads = row.integer("heads"),
                               .kv_heads = row.integer("heads"),
                               .rows = row.integer("seq"),
                               .cols = row.integer("seq")},
                    .transfer = {.operation = transfer_kind::exchange,
                                 .bytes = row.integer("exchange_MiB") << 20}};
    if (row.text("channels") != "default")
      p.transfer.processors = static_cast<int>(row.integer("channels"));
    for (const auto order : {launch_order::communication_first, launch_order::compute_first}) {
      p.order = order;
      const bool first = order == launch_order::communication_first;
      const double us = row.number(first ? "comm_first_us" : "compute_first_us");
      all.push_back({row.text("transport"), p, us * 1e-6});
    }
  }
  return all;
}

TEST(overlap_elsewhere, most_figures_within_a_tenth) {
  if (!std::filesystem::exists(table)) GTEST_SKIP() << table << " is not there";
  const cluster nvlink = read_cluster("tests/gpu/two-h100.yaml", {});
  const cluster shm = read_cluster("tests/gpu/two-h100-host-memory.yaml", {});
  const auto fitted =
      calibrate(nvlink.device,
                {{"nvlink", read_measurements(results + "fit_nvlink.json"), &nvlink},
                 {"host memory", read_measurements(results + "fit_host_memory.json"), &shm}},
                {});
  int within_tenth = 0;
  const auto all = read_table();
  ASSERT_EQ(all.size(), 36u);
  for (const auto& o : all) {
    auto on = o.transport == "shm" ? shm : nvlink;
    on.device = fitted.profile;
    const double error = predicted_time(o.what, on).value() / o.time - 1;
    if (std::abs(error) <= 0.1) ++within_tenth;
    EXPECT_LT(std::abs(error), 0.21) << describe(o.what);
  }
  EXPECT_GE(within_tenth, 28);
}

}  // namespace
}  // namespace attnsim
