#include "ask/compositions.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "model/limit/cuts.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {
namespace {

/// An axis of the grid: which levels it runs along, from the outermost, and their kind; heads are an axis, too.
struct composed_axis {
  level_way way;
  std::vector<std::size_t> levels;
};

constexpr std::size_t most_levels = 6;  ///< with four ways at each

std::vector<int> prime_factors(int n) {
  std::vector<int> factors;
  for (int p = 2; n > 1; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  return factors;
}

level_kind kind_of(level_way way) {
  return way == level_way::keys_ring        ? level_kind::keys_ring
         : way == level_way::queries_gather ? level_kind::queries_gather
                                            : level_kind::keys_gather;
}

/// Rings and queries first, then gathers of keys from the innermost, heads last.
std::vector<composed_axis> axes_of_ways(const std::vector<level_way>& ways) {
  std::vector<composed_axis> axes;
  for (const auto way : {level_way::keys_ring, level_way::queries_gather, level_way::keys_gather,
                         level_way::heads}) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (ways[i] != way) continue;
      const bool of_this = !axes.empty() && axes.back().way == way;
      const bool joins =
          of_this && (way != level_way::keys_gather || axes.back().levels[0] + 1 == i);
      if (!joins) axes.push_back({way, {}});
      axes.back().levels.insert(axes.back().levels.begin(), i);
    }
  }
  return axes;
}

int extent_of(const composed_axis& axis, const std::vector<int>& levels) {
  int extent = 1;
  for (const auto i : axis.levels) extent *= levels[i];
  return extent;
}

/// The device of each rank, ranks in row-major order of the axes.
std::vector<int> devices_of(const std::vector<composed_axis>& axes,
                            const std::vector<int>& levels) {
  const int ranks = std::accumulate(levels.begin(), levels.end(), 1, std::multiplies<>());
  std::vector<int> stride(levels.size(), 1);
  for (std::size_t i = 1; i < levels.size(); ++i) stride[i] = stride[i - 1] * levels[i - 1];
  std::vector<int> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    int rest = rank, device = 0;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      for (auto i = axis->levels.rbegin(); i != axis->levels.rend(); ++i) {
        device += rest % levels[*i] * stride[*i];
        rest /= levels[*i];
      }
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace

std::vector<int> levels_of(const cluster& c, int ranks) {
  std::vector<int> used(static_cast<std::size_t>(ranks));
  std::iota(used.begin(), used.end(), 0);
  std::set<int> sizes{ranks};
  if (c.devices_per_node > 0) sizes.insert(std::min(ranks, c.devices_per_node));
  for (const int size : sizes_of_groups(c.network)) sizes.insert(std::min(ranks, size));
  std::vector<int> levels;
  int inner = 1;
  for (const int size : sizes) {
    if (size % inner != 0 || ranks % size != 0 || size == inner) continue;
    for (const int factor : prime_factors(size / inner)) levels.push_back(factor);
    inner = size;
  }
  while (levels.size() > most_levels) {
    levels.back() *= levels[levels.size() - 2];
    levels.erase(levels.end() - 2);
  }
  if (levels.empty()) levels.push_back(1);
  return levels;
}

strategy compose(const std::vector<int>& levels, const std::vector<level_way>& ways, strategy s) {
  const auto axes = axes_of_ways(ways);
  s.schedule = "composed";
  s.levels.clear();
  s.rows = s.cols = s.ulysses = 1;
  for (const auto& axis : axes) {
    const int extent = extent_of(axis, levels);
    if (axis.way == level_way::heads) {
      s.ulysses = extent;
      continue;
    }
    s.levels.push_back({kind_of(axis.way), extent});
    (axis.way == level_way::queries_gather ? s.cols : s.rows) *= extent;
  }
  s.placement = placed_on(devices_of(axes, levels));
  return s;
}

std::vector<strategy> all_compositions(const std::vector<int>& levels, const strategy& s) {
  std::vector<strategy> all;
  std::vector<level_way> ways(levels.size(), level_ways[0]);
  for (std::size_t number = 0;; ++number) {
    auto rest = number;
    for (auto& way : ways)
      way = level_ways[rest % std::size(level_ways)], rest /= std::size(level_ways);
    if (rest > 0) break;
    all.push_back(compose(levels, ways, s));
  }
  return all;
}

}  // namespace attnsim
