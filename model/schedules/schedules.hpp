// The algorithms: one file each, one line each in the table of schedules.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategy.hpp"

namespace attnsim {

struct algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// Writes the program for `pass` (forward or backward) on the strategy's R x C grid.
  schedule (*generate)(const strategy&, const attention&, pass_kind);
  /// Whether the algorithm runs on R x C; an empty string, or why it does not.
  std::string (*refusal)(const strategy&, const attention&);
};

std::span<const algorithm> algorithms();

/// Throws input_error that lists the names.
const algorithm& find_algorithm(std::string_view name);

/// The strategy with its grid filled in for `ranks`: the only one, or the squarest that the algorithm takes. Throws
/// infeasible when the grid does not have `ranks` ranks (names the grids that do) or the algorithm refuses it.
strategy complete(strategy, const attention&, int ranks);

/// The schedule of a completed strategy.
schedule make_schedule(const strategy&, const attention&, pass_kind pass);

/// All R x C with R * C = ranks, ascending in C.
std::vector<std::pair<int, int>> grids_of(int ranks);

}  // namespace attnsim
