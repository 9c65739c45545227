// How attention is to be distributed: what a planner chooses and a user sets.
#pragma once

#include <string>
#include <vector>

#include "model/attention/tokens.hpp"
#include "model/schedule/framework_copies.hpp"
#include "model/schedule/launch_order.hpp"
#include "model/schedule/run_start.hpp"
#include "model/schedule/schedule.hpp"

namespace attnsim {

/// Which rank keeps which keys on an R x C grid.
enum class kv_order {
  direct,      ///< as they come: Mesh-Attention, TensorRT-LLM
  transposed,  ///< after the grid transpose of Attention2D's paper; square grids only
};

/// How partial outputs of a row are reduced.
enum class reduction_kind {
  ring,  ///< reduce-scatter hop by hop with a log-sum-exp merge at each (Attention2D, algorithm 7)
  all_to_all,  ///< one all-to-all, then one merge of all partials (TensorRT-LLM)
};

/// How a partial output is brought into the rank's own.
enum class merge_kind {
  fused,    ///< by one kernel, which reads both and writes one
  unfused,  ///< by a framework's operations one by one, each over whole tensors (update_out_and_lse of ring-flash-attention)
};

/// At the end of which communication a framework's host goes on, instead of launching ahead.
struct host_waits {
  bool exchange = false;  ///< shifts and transposes
  bool all_gather = false;
  bool reduce_scatter = false;
  bool all_to_all = false;

  bool operator()(op_kind) const;
  friend bool operator==(const host_waits&, const host_waits&) = default;
};

/// What travels of the keys and values of latent attention (latent_keys.hpp).
enum class key_form { expanded, latent };

/// What the ranks along one axis of a composed schedule do (algorithms/composed.cpp).
enum class level_kind {
  keys_ring,       ///< keys and values travel round them
  keys_gather,     ///< each gathers the keys and values of all
  queries_gather,  ///< each gathers the queries of all, and partial outputs are reduced
};

struct level {
  level_kind kind = level_kind::keys_gather;
  int ranks = 1;

  friend bool operator==(const level&, const level&) = default;
};

struct strategy {
  std::string schedule = "ring";
  int rows = 0;  ///< R, ranks that share keys and values; 0: chosen by the schedule
  int cols = 0;  ///< C, ranks that share queries
  /// Ulysses degree: ranks of a group that exchange tokens for heads around the schedule; the grid is of such groups.
  /// 0: chosen by the schedule.
  int ulysses = 1;
  int tensor_parallel = 1;  ///< ranks that have the same tokens and each its heads
  token_layout tokens = token_layout::zigzag;
  std::string placement = "node-major";
  std::string kernel;  ///< empty: the device's default
  kv_order order = kv_order::direct;
  reduction_kind reduction = reduction_kind::ring;
  merge_kind merges = merge_kind::fused;
  precision partials = precision::storage;   ///< partial outputs on the wire
  precision gradients = precision::storage;  ///< dQ, dK, dV on the wire
  key_form keys_sent = key_form::expanded;
  launch_order launch = launch_order::communication_first;
  framework_copies copies;
  host_waits waits;
  run_start start = run_start::in_sequence;
  double block_cost = 0;  ///< time of one block of a tile over that of one query chunk's transfer
  std::vector<level> levels;  ///< of a composed schedule, by axis of its grid
  int parts = 1;              ///< of the heads, one after the other (head_parts.hpp)
  std::vector<int> shares;    ///< of the tokens, by chunk, in any unit; empty: equal

  friend bool operator==(const strategy&, const strategy&) = default;
};

/// Ranks of one place of the grid: they differ in their heads.
constexpr int ranks_per_place(const strategy& s) {
  return s.ulysses * s.tensor_parallel;
}

std::string_view name_of(level_kind);
level_kind parse_level_kind(std::string_view);
/// "keys-ring:2 queries-gather:4", and back. Throws std::invalid_argument.
std::string written(const std::vector<level>&);
std::vector<level> parse_levels(const std::string& text);

std::string_view name_of(kv_order);
std::string_view name_of(reduction_kind);
std::string_view name_of(merge_kind);
std::string_view name_of(key_form);
key_form parse_key_form(std::string_view);
kv_order parse_kv_order(std::string_view);
reduction_kind parse_reduction(std::string_view);
merge_kind parse_merges(std::string_view);
precision parse_precision(std::string_view);
std::string_view name_of(precision);

}  // namespace attnsim
