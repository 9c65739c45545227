// The schedules. Each describes itself in a file of this folder; what is to be known of a schedule is asked of its
// description, never of its name. A new one is a file and a line in all_schedules.inc; a program with one of its own adds it
// by add_algorithm().
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/schedule/strategy.hpp"

namespace attnsim {

/// Bytes of a rank's chunk of the tensors, as they travel in a pass, of the heads that it has inside an exchange of heads.
struct chunk_bytes {
  std::int64_t queries = 0;      ///< forward q; backward also d_o and two row statistics
  std::int64_t keys = 0;         ///< K and V
  std::int64_t row_results = 0;  ///< on the wire: forward a partial o with its lse, backward d_q
  std::int64_t statistics = 0;   ///< forward, of them the lse
  std::int64_t key_results = 0;  ///< on the wire: backward d_k and d_v
  /// K and V, and on the wire backward d_k and d_v, not of the chunk but of the tokens before it that a window reaches (halo.hpp).
  std::int64_t halo_keys = 0, halo_results = 0;
  /// The same of as many tokens as a window keeps of the sequence's first.
  std::int64_t kept_keys = 0, kept_results = 0;
};

/// What a rank sends in a pass.
struct volume {
  struct part {
    axis_set
        axes;  ///< of the schedule's grid; none: the grid transpose, in which ranks on the diagonal take no part
    std::int64_t bytes;
    bool round =
        true;  ///< along one axis, to the next rank by shifts or to all by collectives; else somehow
  };

  std::vector<part> parts;
  bool apart = false;  ///< all of it before or after the computation
};

struct algorithm {
  /// Whether it runs with Ulysses' exchange of heads around it.
  enum class exchange {
    none,
    possible,   ///< in groups of any size, one rank a group unless asked for
    usual,      ///< in groups as large as the heads allow unless asked for less
    all_ranks,  ///< only so, all ranks in one group
  };

  std::string name;
  std::string summary;
  std::string source;  ///< where it was published
  /// Writes the program for `pass` (forward or backward) on the strategy's R x C places. One place is none of its business:
  /// there nothing travels.
  schedule (*generate)(const strategy&, const attention&, pass_kind);
  /// Whether the algorithm runs on R x C: an empty string, or why it does not. Null: on all.
  std::string (*refusal)(const strategy&, const attention&) = nullptr;
  /// What `generate`'s program sends, to the byte, so that a search need not write it. Null: not known, taken for nothing.
  volume (*sends)(const strategy&, const chunk_bytes&, pass_kind) = nullptr;
  /// The extents of its grid. Null: R x C.
  std::vector<int> (*extents)(const strategy&) = nullptr;
  exchange heads = exchange::none;
  bool transposes =
      false;  ///< also has the transposed K/V order, on square grids; usual with striped tokens
  bool reduces = false;         ///< reduces partial outputs as strategy::reduction says
  bool sends_partials = false;  ///< partial outputs travel, as strategy::partials says
  bool sends_gradients = true;  ///< so do gradients, as strategy::gradients says
  bool merges = true;           ///< a rank adds up partial outputs, as strategy::merges says
  bool weighs_blocks = false;   ///< wants strategy::block_cost
  /// Every rank has all queries, as when decoding: forward only, and keys need not be a multiple of the ranks. Its refusal sees
  /// to it that the query heads of a rank are one of the rows.
  bool whole_queries = false;
  bool for_more_keys =
      false;  ///< than queries: a plan of all schedules leaves it out where there are not
  bool for_windows =
      false;  ///< computes sliding windows only, on contiguous tokens; a plan leaves it out where there is none
  bool found_by_search = false;  ///< has levels that only a search writes; a plan leaves it out
  token_layout tokens = token_layout::zigzag;  ///< usual under a causal mask
  std::string placement = "node-major";        ///< usual
};

/// In the order in which they are listed. References to them stay valid.
const std::deque<algorithm>& algorithms();

/// Adds one more, for all that is asked afterwards. Not while other threads ask. Throws std::invalid_argument for a name
/// that is taken.
void add_algorithm(algorithm);

/// Whether a search of all schedules tries it for a problem whose keys are more than its queries, or that has windows.
bool is_searched(const algorithm&, pass_kind, bool more_keys, bool has_windows);

/// Throws input_error that lists the names.
const algorithm& find_algorithm(std::string_view name);

/// Why the algorithm does not run with this strategy's grid, K/V order, Ulysses and tensor-parallel degree; empty if it
/// does.
std::string refusal(const strategy&, const attention&);

/// Whether the strategy's algorithm computes it.
bool has_pass(const strategy&, pass_kind);
/// Throws forward_only where it does not.
void require_pass(const strategy&, pass_kind);

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

/// Ascending.
template <typename Integer>
std::vector<Integer> divisors_of(Integer n) {
  std::vector<Integer> all;
  for (Integer d = 1; d <= n; ++d) {
    if (n % d == 0) all.push_back(d);
  }
  return all;
}

/// All R x C with R * C = ranks, ascending in C.
std::vector<std::pair<int, int>> grids_of(int ranks);

}  // namespace attnsim
