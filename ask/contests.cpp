#include "ask/contests.hpp"

#include <algorithm>
#include <numeric>

namespace attnsim::ask {
namespace {

double mean(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

bool is_decided(std::vector<double> times) {
  if (times.size() < 2) return false;
  std::nth_element(times.begin(), times.begin() + 1, times.end());
  return times[1] > 1.03 * times[0];
}

}  // namespace

void contests::add(const std::string& problem, seconds predicted, seconds measured) {
  problems_[problem][predicted].push_back(measured.value());
}

contests::tally contests::named_right() const {
  tally result;
  for (const auto& [problem, schedules] : problems_) {
    std::vector<double> times;  // by ascending prediction
    for (const auto& [predicted, measured] : schedules) times.push_back(mean(measured));
    if (!is_decided(times)) continue;
    ++result.of;
    result.right += std::min_element(times.begin(), times.end()) == times.begin();
  }
  return result;
}

}  // namespace attnsim::ask
