// Packed documents that are alike. To a strided layout: equally long, and beginning at the same place of its period.
// Attention between two blocks that go through the whole sequence has the same tiles in all of a kind, so that they are
// counted instead of listed: 65,536 documents of 16 tokens over 64 ranks are four kinds.
#pragma once

#include <cstdint>
#include <vector>

#include "model/attention/attention.hpp"
#include "model/attention/tokens.hpp"

namespace attnsim {

class document_kinds {
 public:
  /// `bounds`: of document_bounds(); `period`: a multiple of the strides of the blocks that will be asked about.
  document_kinds(std::vector<std::int64_t> bounds, std::int64_t period);

  /// The documents that may have tokens of both blocks: one of each kind where both blocks go through the whole sequence,
  /// else each by itself.
  std::vector<token_document> shared(const token_set& queries, const token_set& keys) const;

 private:
  bool goes_through(const token_set&) const;

  std::vector<std::int64_t> bounds_;
  std::int64_t period_;
  std::vector<token_document> kinds_;  ///< ascending
};

/// Packed documents that are alike where each is laid out by itself: equally long.
struct document_lengths {
  attention one_of_each;                  ///< with one document of each length, two of an only one
  std::vector<token_document> documents;  ///< its documents, with how often each length is there
};
document_lengths lengths_of(const attention&);

}  // namespace attnsim
