// The algorithms: one file each, one line each in the table of schedules.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule/strategy.hpp"

namespace attnsim {

struct algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// Writes the program for `pass` (forward or backward) on the strategy's R x C grid.
  schedule (*generate)(const strategy&, const attention&, pass_kind);
  /// Whether the algorithm runs on R x C; an empty string, or why it does not.
  std::string (*refusal)(const strategy&, const attention&);
  /// Whether it runs with Ulysses' exchange of heads around it: never, in groups of any size, or only so.
  enum class exchange { none, any, all_ranks } heads = exchange::none;
};

std::span<const algorithm> algorithms();

/// Throws input_error that lists the names.
const algorithm& find_algorithm(std::string_view name);

/// Why the algorithm does not run with this strategy's grid, Ulysses and tensor-parallel degree; empty if it does.
std::string refusal(const strategy&, const attention&);

/// Throws infeasible unless the tensor-parallel degree divides the ranks and the K/V heads.
void require_tensor_parallel(const strategy&, const attention&, int ranks);

/// The Ulysses degrees that the schedule and the heads allow on `ranks` ranks, ascending.
std::vector<int> ulysses_degrees(const strategy&, const attention&, int ranks);

/// The strategy with its Ulysses degree and grid filled in for `ranks`: the only one, or the largest degree and squarest
/// grid that the algorithm takes. Throws infeasible when they do not make `ranks` ranks (names those that do) or the
/// algorithm refuses them.
strategy complete(strategy, const attention&, int ranks);

/// The rank grid of a completed strategy's schedule, as placements arrange it: the last axis has the ranks of a place.
rank_grid schedule_grid(const strategy&);

/// The schedule of a completed strategy.
schedule make_schedule(const strategy&, const attention&, pass_kind pass);

/// All R x C with R * C = ranks, ascending in C.
std::vector<std::pair<int, int>> grids_of(int ranks);

}  // namespace attnsim
