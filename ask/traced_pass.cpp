#include "ask/traced_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/median.hpp"
#include "sim/simulator.hpp"

namespace attnsim::ask {
namespace {

std::string part_of(const placed_schedule& i, std::uint32_t operation) {
  if (i.communication().pattern_of(operation) < 0) return "kernels";
  return is_collective(i.program().program[operation].kind) ? "collectives" : "transfers";
}

double uncertainty_of(const placed_schedule& i, std::uint32_t operation) {
  const auto& device = i.on().device;
  const int pattern = i.communication().pattern_of(operation);
  if (pattern < 0) return device.uncertainty.compute;
  return device.communication_uncertainty(i.communication().transport(pattern));
}

}  // namespace

std::vector<compared_point> compare_pass(const placed_schedule& i, int rank,
                                         const std::vector<rank_timeline>& repeats,
                                         const std::string& whole) {
  std::map<std::uint32_t, std::vector<double>> times;
  std::vector<double> totals;
  for (const auto& pass : repeats) {
    totals.push_back(pass.end.value());
    for (const auto& op : pass.intervals)
      times[op.operation].push_back((op.end - op.start).value());
  }
  const auto predicted = simulate(i, {.record = true});
  const auto rank_class = predicted.class_of[static_cast<std::size_t>(rank)];
  const auto& own = predicted.ranks[static_cast<std::size_t>(rank_class)];
  std::vector<compared_point> points;
  double least_sure = i.on().device.uncertainty.compute;
  for (const auto& op : own.intervals) {
    const auto measured = times.find(op.operation);
    if (measured == times.end()) continue;
    const auto kind = i.program().program[op.operation].kind;
    const auto share = uncertainty_of(i, op.operation);
    least_sure = std::max(least_sure, share);
    points.push_back(compared(part_of(i, op.operation),
                              fmt::format("operation {} ({})", op.operation, name_of(kind)),
                              op.end - op.start, share, seconds(median(measured->second))));
  }
  points.push_back(compared("schedules", whole, own.end, least_sure, seconds(median(totals))));
  return points;
}

}  // namespace attnsim::ask
