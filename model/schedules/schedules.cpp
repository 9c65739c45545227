#include "model/schedules/schedules.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/error.hpp"
#include "model/schedules/generators.hpp"

namespace attnsim {
namespace {

std::string any_grid(const strategy&, const attention&) {
  return "";
}

std::string one_column(const strategy& s, const attention&) {
  if (s.order == kv_order::transposed) return "keeps keys in the direct order";
  return s.cols == 1 ? "" : "runs on one column of ranks";
}

std::string square_if_transposed(const strategy& s, const attention&) {
  const bool fits = s.order == kv_order::direct || s.rows == s.cols;
  return fits ? "" : "needs a square grid for the transposed K/V order";
}

constexpr algorithm table[] = {
    {"ring", "queries stay, keys and values travel round all ranks", "arXiv 2310.01889", ring,
     one_column},
    {"allgather", "every rank gathers all keys and values (TransformerEngine, Llama 3)",
     "arXiv 2407.21783, section 3.3.2", allgather, one_column},
    {"attention2d",
     "gathers queries along rows and keys along columns, one kernel call, reduces outputs",
     "arXiv 2503.15758, algorithms 1 and 7", attention2d, square_if_transposed},
    {"attention2d-overlap", "Attention2D with all transfers hop by hop under computation",
     "arXiv 2503.15758, algorithms 4 to 6", attention2d_overlap, square_if_transposed},
    {"mesh", "a tile of query and key chunks a rank, in greedy steps", "arXiv 2512.20968", mesh,
     any_grid},
};

}  // namespace

std::span<const algorithm> algorithms() {
  return table;
}

const algorithm& find_algorithm(std::string_view name) {
  std::string names;
  for (const auto& a : table) {
    if (a.name == name) return a;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
  }
  throw input_error("--schedule", std::string(name), "expected one of: " + names);
}

std::vector<std::pair<int, int>> grids_of(int ranks) {
  std::vector<std::pair<int, int>> result;
  for (int cols = 1; cols <= ranks; ++cols) {
    if (ranks % cols == 0) result.emplace_back(ranks / cols, cols);
  }
  return result;
}

strategy complete(strategy s, const attention& a, int ranks) {
  const auto& chosen = find_algorithm(s.schedule);
  std::string feasible;
  strategy squarest;
  for (const auto& [rows, cols] : grids_of(ranks)) {
    auto candidate = s;
    candidate.rows = rows;
    candidate.cols = cols;
    if (!chosen.refusal(candidate, a).empty()) continue;
    feasible += fmt::format("{}{}x{}", feasible.empty() ? "" : ", ", rows, cols);
    if (squarest.rows == 0 || std::abs(rows - cols) < std::abs(squarest.rows - squarest.cols))
      squarest = candidate;
  }
  const std::string options = feasible.empty() ? "none" : feasible;
  if (s.rows == 0 && squarest.rows == 0) {
    throw infeasible(
        fmt::format("--schedule: '{}': no grid of {} ranks will do", s.schedule, ranks));
  }
  if (s.rows == 0) return squarest;
  const auto grid = fmt::format("{}x{}", s.rows, s.cols);
  if (s.rows * s.cols != ranks) {
    throw infeasible(fmt::format("--grid: '{}': has {} ranks, the cluster {}; feasible: {}", grid,
                                 s.rows * s.cols, ranks, options));
  }
  if (const auto reason = chosen.refusal(s, a); !reason.empty()) {
    throw infeasible(
        fmt::format("--grid: '{}': {} {}; feasible: {}", grid, s.schedule, reason, options));
  }
  return s;
}

schedule make_schedule(const strategy& s, const attention& a, pass_kind pass) {
  auto program = find_algorithm(s.schedule).generate(s, a, pass);
  return s.launch == launch_order::compute_first ? launched_compute_first(std::move(program))
                                                 : program;
}

}  // namespace attnsim
