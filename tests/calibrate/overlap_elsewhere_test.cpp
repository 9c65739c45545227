// Launch order and channels: attention beside one exchange of two H100, as measured elsewhere (../shared/measured,
// overlap_2xH100_nvlink.csv), predicted from a profile fitted to our own measurements (tests/gpu/results) and published
// FlashAttention-2 rates.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "calibrate/calibration.hpp"
#include "calibrate/predicted.hpp"
#include "model/cluster.hpp"

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
  std::ifstream file(table);
  bool header = true;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || std::exchange(header, false)) continue;
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    const auto integer = [&](std::size_t i) { return std::stoll(row.at(i)); };
    overlap_point p{.kernel = {.kernel = row.at(2) == "flash2" ? "fa2" : "cudnn",
                               .heads = integer(3),
                               .kv_heads = integer(3),
                               .rows = integer(4),
                               .cols = integer(4)},
                    .transfer = {.operation = transfer_kind::exchange, .bytes = integer(5) << 20}};
    if (row.at(1) != "default") p.transfer.processors = static_cast<int>(integer(1));
    for (const auto order : {launch_order::communication_first, launch_order::compute_first}) {
      p.order = order;
      const auto column = order == launch_order::communication_first ? 8 : 9;
      all.push_back({row.at(0), p, std::stod(row.at(column)) * 1e-6});
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
