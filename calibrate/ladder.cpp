#include "calibrate/ladder.hpp"

#include <algorithm>
#include <cmath>

namespace attnsim {
namespace {

rung_summary summary_of(const std::string& rung, const std::vector<ladder_point>& points) {
  rung_summary s{.rung = rung};
  std::vector<double> sizes;
  double inside = 0;
  for (const auto& p : points) {
    if (p.rung != rung) continue;
    if (sizes.empty() || std::abs(p.error()) > std::abs(s.worst.error())) s.worst = p;
    sizes.push_back(std::abs(p.error()));
    inside += p.inside() ? 1 : 0;
  }
  std::sort(sizes.begin(), sizes.end());
  s.points = sizes.size();
  s.median = median(sizes);
  s.percentile_95 =
      sizes[static_cast<std::size_t>(std::lround(0.95 * static_cast<double>(sizes.size() - 1)))];
  s.inside = inside / static_cast<double>(sizes.size());
  return s;
}

}  // namespace

std::string rung_of(const measured_point& point) {
  struct {
    std::string operator()(const kernel_point&) const { return "kernels"; }
    std::string operator()(const memory_point&) const { return "memory"; }
    std::string operator()(const transfer_point& p) const {
      return p.operation == transfer_kind::send || p.operation == transfer_kind::exchange ||
                     p.operation == transfer_kind::all_to_all
                 ? "transfers"
                 : "collectives";
    }
    std::string operator()(const overlap_point&) const { return "overlap"; }
  } rung;
  return std::visit(rung, point);
}

std::vector<rung_summary> summarise(const std::vector<ladder_point>& points) {
  std::vector<rung_summary> all;
  for (const auto& p : points) {
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.rung == p.rung; });
    if (!known) all.push_back(summary_of(p.rung, points));
  }
  return all;
}

}  // namespace attnsim
