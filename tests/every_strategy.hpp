// All strategies that the schedules take on a number of ranks.
#pragma once

#include <tuple>
#include <vector>

#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {

/// Every schedule with every Ulysses degree, grid, K/V order and reduction that it has.
inline std::vector<strategy> every_strategy(int ranks, const attention& a,
                                            int tensor_parallel = 1) {
  std::vector<strategy> result;
  if (a.kv_heads % tensor_parallel != 0 || ranks % tensor_parallel != 0) return result;
  for (const auto& one : algorithms()) {
    strategy s{.schedule = one.name, .tensor_parallel = tensor_parallel};
    const auto add_grid = [&](std::pair<int, int> grid) {
      std::tie(s.rows, s.cols) = grid;
      for (const auto order : {kv_order::direct, kv_order::transposed}) {
        for (const auto reduction : {reduction_kind::ring, reduction_kind::all_to_all}) {
          s.order = order;
          s.reduction = reduction;
          const bool differs = one.reduces || reduction == reduction_kind::ring;
          if (differs && refusal(s, a).empty()) result.push_back(s);
        }
      }
    };
    for (const int degree : ulysses_degrees(s, a, ranks / tensor_parallel)) {
      s.ulysses = degree;
      for (const auto& grid : grids_of(ranks / ranks_per_place(s))) add_grid(grid);
    }
  }
  return result;
}

}  // namespace attnsim
