// A global batch of packed documents on context-parallel groups of several sizes, against one size for all.
//
// One size: as many ranks a group as the longest document needs, so that no rank has more than its most tokens. Dynamic (Megatron's
// dynamic or hybrid context parallelism): each document runs on the smallest power of two of ranks that has room for it, groups are
// carved from the pool of all ranks, and documents that need as many ranks are packed together. Micro-batches follow each other;
// each ends with its slowest group.
//
// Bins of documents are filled longest first, each into the bin with the least work (the sum of squared lengths) that has room, of
// as few bins as will do. Bins go into micro-batches slowest first, into the first that has enough ranks left.
//
// Times are of one attention layer by the closed form, a group's as if it were alone on the first ranks of the cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ask/question.hpp"

namespace attnsim::ask {

struct document_group {
  int ranks = 1;
  std::vector<std::int64_t> documents;  ///< lengths, longest first
  seconds time;
};

using micro_batch = std::vector<document_group>;  ///< at the same time, slowest first

struct batch_plan {
  std::vector<micro_batch> micro_batches;

  seconds time() const;
  /// Busy time of all ranks over the time that they are there, `ranks` in all.
  double busy(int ranks) const;
};

struct grouped_batch {
  int ranks = 0;
  std::int64_t rank_tokens = 0;
  std::int64_t documents = 0, tokens = 0;
  int fixed_ranks = 1;  ///< of each group, where all are alike
  batch_plan fixed, dynamic;
};

/// The question's layer and schedule on its ranks, for a batch of these lengths; no rank has more than `rank_tokens`. Throws
/// input_error for `rank_tokens` below 2 and what the question may throw; infeasible for a document that has no room on all ranks.
grouped_batch group_documents(const question&, const cluster&, std::vector<std::int64_t> lengths,
                              std::int64_t rank_tokens);

/// What to write into Megatron's settings.
std::string megatron_settings(const grouped_batch&);

}  // namespace attnsim::ask
