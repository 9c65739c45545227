// Where the best choice changes: times of several candidates at several values of something.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ask/predict.hpp"
#include "ask/what_if.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim::ask {

struct crossing {
  std::string of;                   ///< "tokens", "nics.bandwidth"
  std::vector<std::string> values;  ///< in order
  int asked = -1;                   ///< which of them the question is about
  std::vector<std::pair<std::string, std::vector<seconds>>> times;  ///< by name; zero: infeasible

  /// The name that is fastest at a value; none where all are infeasible.
  std::optional<std::string> best(std::size_t value) const;
};

/// The best candidate of every schedule, by the closed form, for a sixteenth to 16 times the tokens. `name` says what to
/// call it.
crossing over_sequences(const cluster&, const std::vector<prediction>& ranked,
                        std::string (*name)(const prediction&));

/// What is better passed in a prefill with a cached prefix, by the share of new tokens.
struct pass_crossing {
  /// Of new tokens over all, 1 to 1/256, all as many as asked for. By what travels between the places of the grid, the best
  /// candidate's: "keys" (pass-KV), "queries" and their partial outputs (pass-Q), "both", or "heads" alone where there is one
  /// place.
  crossing times;
  /// The share at which passing queries, with their partial outputs and log-sum-exps, sends as many bytes as passing keys and
  /// values: T (q + o + lse) = S (k + v), bytes a token.
  double even_bytes = 0;
  /// The first value at which a rank has so few new tokens that its kernels are read by a law that nobody measured, and why.
  std::optional<std::size_t> assumed_from;
  std::string assumed;

  /// The first value, so the largest share, from which on down passing queries is better than passing keys.
  std::optional<std::size_t> first_of_queries() const;
};

/// Whether any passes tokens to where others are: schedules that decode over a sharded cache do not.
bool passes_any(const std::vector<prediction>& ranked);

/// By the closed form, of those that do.
pass_crossing over_new_tokens(const cluster&, const std::vector<prediction>& ranked);

/// The best candidate of every schedule at the values that were asked for.
crossing crossing_of(const what_if_answer&);

}  // namespace attnsim::ask
