// The greedy step scheduler of Mesh-Attention (arXiv 2512.20968, section on scheduling, figure 1e): in which order a rank
// receives the a - 1 remote query chunks and b - 1 remote key chunks of its a x b tile, what it computes meanwhile, and
// when partial results leave.
//
// As in the paper, a block may run only after all earlier communications in its dimension, so what can be computed is a
// growing rectangle; a step computes what the step before unlocked while the next chunk arrives. The paper prunes the
// search by restriction and greed ("the communication that unlocks most computation") without giving the rule in full.
// Ours: of "keys next" and "queries next", the one whose best completion (all keys then all queries, or the reverse)
// ends first by the step costs; unless queries gain clearly, keys come next, since complete rows let outputs leave. Chunks are numbered relative to
// the rank: row 0 and column 0 are its own.
#pragma once

#include <vector>

namespace attnsim {

enum class arrival { none, queries, keys };

struct mesh_step {
  int row_first = 0, rows = 0;  ///< blocks computed in this step; rows = 0: none
  int col_first = 0, cols = 0;
  arrival receives = arrival::none;  ///< what arrives meanwhile: the next chunk of that side
  int output = -1;        ///< row whose result leaves in this step; row 0, the own, stays: no bytes
  int key_gradient = -1;  ///< column whose dK, dV leave in this step (backward); column 0 stays

  friend bool operator==(const mesh_step&, const mesh_step&) = default;
};

/// Times of one unit of each kind, in any common unit. The default weighs communication only.
struct mesh_costs {
  double block = 0;         ///< one block of the tile
  double keys = 2;          ///< one remote key chunk (K and V)
  double queries = 1;       ///< one remote query chunk; backward: with d_o and statistics
  double output = 1;        ///< one partial output; backward: dQ
  double key_gradient = 0;  ///< one dK, dV; 0: forward
};

/// The steps for an a x b tile (a query chunks, b key chunks; a, b >= 1).
std::vector<mesh_step> mesh_steps(int a, int b, const mesh_costs& = {}, bool backward = false);

}  // namespace attnsim
