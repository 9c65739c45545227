// Fits two H200 (reproduce/measured/h200) and holds the profile against shapes and sizes that the fit has not seen.
#include <gmock/gmock.h>

#include <algorithm>

#include "ask/part_errors.hpp"
#include "calibrate/calibration.hpp"
#include "calibrate/predicted.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim {
namespace held_out_test {

const std::string results = "reproduce/measured/h200/";

cluster machine(const std::string& name) {
  return read_cluster("tests/gpu/" + name + ".yaml", {.device = "h200-sxm5"});
}

TEST(held_out, kernels_transfers_and_overlaps_within_the_published_errors) {
  const std::pair<std::string, cluster> transports[] = {
      {"nvlink", machine("two-h100")}, {"host_memory", machine("two-h100-host-memory")}};
  std::vector<measurement_set> sets;
  for (const auto& [name, on] : transports)
    sets.push_back({name, read_measurements(results + "fit_" + name + ".json"), &on});
  const auto fitted = calibrate(transports[0].second.device, sets);
  std::vector<compared_point> points;
  for (auto [name, on] : transports) {
    on.device = fitted.profile;
    for (const auto& m : read_measurements(results + "held_out_" + name + ".json").points) {
      const auto time = predicted_time(m.what, on);
      points.push_back({part_of(m.what), describe(m.what), time, time, time, seconds(m.median())});
    }
  }
  struct limit {
    std::string part;
    double median, percentile_95;
  };
  const limit limits[] = {{"kernels", 0.03, 0.08},
                          {"transfers", 0.03, 0.12},
                          {"collectives", 0.03, 0.12},
                          {"overlap", 0.03, 0.12}};
  const auto summaries = errors_by_part(points);
  for (const auto& l : limits) {
    const auto found = std::find_if(summaries.begin(), summaries.end(),
                                    [&](const auto& s) { return s.part == l.part; });
    ASSERT_NE(found, summaries.end()) << l.part;
    EXPECT_LE(found->median, l.median) << l.part;
    EXPECT_LE(found->percentile_95, l.percentile_95) << l.part << ": " << found->worst.what;
  }
}

}  // namespace held_out_test
}  // namespace attnsim
