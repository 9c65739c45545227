#include "validate/repeats.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "model/median.hpp"

namespace attnsim::validate {
namespace {

seconds sum_of(std::span<const seconds> durations) {
  return std::accumulate(durations.begin(), durations.end(), seconds());
}

}  // namespace

double median_within(std::span<const seconds> durations) {
  std::vector<double> times, distances;
  for (const auto d : durations) times.push_back(d.value());
  const double middle = median(times);
  for (const double t : times) distances.push_back(std::abs(t - middle));
  constexpr double of_90_percent = 1.645, of_a_median = 1.25, of_normal_times = 0.87;
  return of_90_percent * of_a_median * of_normal_times * quantile(distances, 0.75) /
         std::sqrt(static_cast<double>(times.size())) / middle;
}

bool are_enough(std::span<const seconds> durations, const repeats_wanted& wanted) {
  const auto runs = static_cast<int>(durations.size());
  if (wanted.runs > 0) return runs >= wanted.runs;
  if (runs > 0 && (runs >= wanted.most || sum_of(durations) >= wanted.longest)) return true;
  return runs >= wanted.least && median_within(durations) <= wanted.within;
}

bool stopped_early(std::span<const seconds> durations, const repeats_wanted& wanted) {
  if (wanted.runs > 0) return false;
  return static_cast<int>(durations.size()) < wanted.least ||
         median_within(durations) > wanted.within;
}

}  // namespace attnsim::validate
