// The one place where a schedule's named data becomes bytes and operations: a schedule bound to an attention problem and
// a token layout. The model, the simulator and the executor all count here, so they cannot disagree.
#pragma once

#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "model/attention/attention.hpp"
#include "model/attention/counted_tiles.hpp"
#include "model/attention/document_kinds.hpp"
#include "model/attention/heads.hpp"
#include "model/attention/tokens.hpp"
#include "model/schedule/schedule.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

/// Bytes read and written, and in how many calls.
struct memory_calls {
  byte_count traffic;
  int count = 0;
  int additions = 0;  ///< of them, those that add to what is there; the others copy

  memory_calls& operator+=(const memory_calls& other) {
    traffic += other.traffic;
    count += other.count;
    additions += other.additions;
    return *this;
  }
  friend bool operator==(const memory_calls&, const memory_calls&) = default;
};

/// Of a tensor's numbers in a format: queries, keys and values have the attention's type, other tensors that of its results; between
/// ranks queries, keys, values and latents that of the wire.
data_type number_type(const attention&, tensor, precision);

/// Elements of a head of a token.
std::int64_t head_elements(const attention&, tensor);

/// Bytes per token of a tensor in a format, of these heads and all batches; none of values that are in the keys.
std::int64_t token_bytes(const attention&, tensor, precision, const head_range&);

class workload {
 public:
  /// `staircase`: the kernel takes masks with different strides on both sides (device.hpp). Throws infeasible when the
  /// sequence, or the prefix or the other sequence of its keys, is not a multiple of the layout's unit; says which padding
  /// would do. With whole queries keys need not be one.
  workload(const schedule&, const attention&, token_layout, bool staircase,
           merge_kind = merge_kind::fused);

  const schedule& program() const { return *schedule_; }
  const attention& problem() const { return attention_; }
  token_layout layout() const { return layout_; }
  int ranks() const { return schedule_->grid.ranks(); }

  /// Tokens of a chunk, those of the sequence alone; keys of whole queries with the prefix, of the longest chunk.
  std::int64_t chunk_tokens(token_side = token_side::queries) const;
  /// Of a cached prefix, those in each slot of keys and values, before the sequence's. Where heads are exchanged a rank keeps
  /// its share of the heads of the whole group's prefix, and only the sequence's tokens are exchanged.
  std::int64_t cached_tokens(head_form) const;
  std::int64_t slot_tokens(const buffer&) const;
  std::int64_t slot_tokens(const operand& o) const { return slot_tokens(schedule_->buffer_of(o)); }
  token_set tokens(int rank, const operand&) const;
  /// The tokens of a side's chunk of which `rank` is the home.
  token_set home_tokens(int rank, token_side) const;
  /// The shares of heads of keys and values that hold a cached prefix before an exchange adds the sequence's, and those tokens.
  operands caches() const;
  token_set cached_tokens(int rank, const operand&) const;

  /// The heads that `rank` has in buffers of a form, of one of the schedule's parts of the heads; of dealt ones in slot `slot`.
  head_range heads(int rank, head_form, int slot = 0, int part = 0) const;
  /// How many heads of a tensor a slot has room for: the largest share of any rank.
  std::int64_t heads_of_slot(tensor, head_form) const;

  /// Bytes per token of a tensor in a format, all heads of a slot and batches.
  std::int64_t token_bytes(tensor, precision, head_form) const;
  byte_count bytes(const operand&) const;  ///< all slots of the operand
  byte_count bytes(const buffer&) const;   ///< all slots

  /// Bytes that `rank` sends in a communication operation; the same number is received.
  byte_count bytes_sent(const operation&, int rank) const;
  /// Bytes that `rank` sends in the whole program.
  byte_count bytes_sent(int rank) const;

  /// The kernel calls of an attention operation on `rank`, with adds_rows and adds_cols set; of each sequence in a batch of several
  /// lengths.
  std::vector<tile> tiles(const operation&, int rank) const;
  /// Blocks that were looked at, by operand and the first chunk that it holds: ranks of a row have the same queries.
  using known_blocks = std::map<std::pair<const operand*, int>, placed_block>;
  /// The same, but of tiles, documents or sequences that are alike one, with the times that there are.
  std::vector<tile> counted_tiles(const operation&, int rank, known_blocks&) const;
  std::vector<tile> counted_tiles(const operation& op, int rank) const {
    known_blocks none;
    return counted_tiles(op, rank, none);
  }
  /// Looks at the blocks that counted_tiles() would ask for: it then only reads what is known. False where it asks for more.
  bool look_at_blocks(const operation&, int rank, known_blocks&) const;
  /// How the tiles depend on the rank: ranks with equal variants have tiles of the same shapes, calls and work.
  /// -1 when only tiles() itself can tell.
  int tile_variant(const operation&, int rank) const;
  /// The first of the ranks that have the same tiles as `rank` and as many heads because they exchange the tokens of one chunk for
  /// heads; else `rank`.
  int first_alike(const operation&, int rank) const;
  /// All ranks have the same tiles in every operation: nothing is masked, and all have as many heads.
  bool same_on_all_ranks() const {
    return attention_.mask == mask_kind::full && attention_.padding == 0 &&
           attention_.documents.empty() && even_heads_ && equal_shards_;
  }

  /// A local operation on the device's memory: merge, accumulate, delta, copy. The first partial result is copied, the others
  /// are added to it one after the other.
  memory_calls memory_calls_of(const operation&) const;
  /// Bringing one tile's results from scratch to their place, beyond the kernel's own writes.
  memory_calls accumulation_of(const operation&, const tile&) const;
  /// Whether a merge adds up in its first partial result, fp32 that nothing else reads, and rounds once.
  bool merges_in_place(const operation&) const;

  /// The number format in which a kernel call leaves its results, row statistics apart: a kernel writes one format only. Of a
  /// framework that merges by operations of its own it is storage: the kernel is a library's.
  /// fp32 if all of them go straight to fp32 buffers, else storage.
  precision result_format(const operation&, const tile&) const;
  /// Whether a kernel call's result for the operand goes through scratch: it is added to what is there, or the buffer
  /// has another format.
  bool uses_scratch(const operation&, const tile&, const operand& result) const;

  /// Scratch for one tile's results before they are brought to their place, and for what unfused merges leave in between.
  byte_count scratch_bytes(const operation&, const tile&) const;
  /// The same of a merge.
  byte_count scratch_bytes(const operation&) const;
  /// The largest over operations and ranks (above 256: some_ranks).
  byte_count scratch_bytes() const;

  /// All ranks where they are at most `few`, else the first, the middle and the last: enough for what hardly differs.
  std::vector<int> some_ranks(int few) const;

 private:
  std::int64_t merge_bytes(tensor, head_form) const;
  std::int64_t merge_scratch(tensor, head_form) const;
  std::vector<tile> tiles_of(const operation&, const token_set& queries, const token_set& keys,
                             const std::vector<token_document>&) const;
  const placed_block& block(int rank, const operand&, known_blocks&) const;
  held_results held_by(const operation&) const;
  /// Repeated tiles can be told from the ranges of queries and keys.
  bool counts_tiles() const {
    return attention_.window == 0 && attention_.prefix == 0 && attention_.kv_sequence == 0 &&
           !schedule_->whole_queries;
  }
  bool counts_tiles_of_blocks() const;  ///< each of queries and keys one block of one sequence
  /// Of a batch of several lengths: sequences that are alike once, or each.
  std::vector<tile> tiles_of_requests(const operation&, int rank, bool counted) const;
  bool lays_out_each_document(const operation&) const;
  /// With all tokens of the operation's queries and keys: documents are one call.
  tile with_all_tokens(const operation&, tile) const;
  bool exchanges_heads() const { return schedule_->head_axis != 0 && !schedule_->whole_queries; }
  int slot_total() const;
  token_set tokens(const attention&, int rank, const operand&) const;
  std::int64_t tail_tokens() const;
  token_set tokens_of_chunk(const attention&, token_side, int chunk) const;
  token_set tokens_of_slot(const attention&, token_side, int slot) const;

  const schedule* schedule_;
  attention attention_;
  token_layout layout_;
  bool staircase_;
  merge_kind merges_;
  bool even_heads_;
  bool equal_shards_;  ///< all ranks have as many keys
  document_kinds documents_;
  std::vector<token_document> whole_;  ///< the sequence as one document
  document_lengths lengths_;
  std::array<head_range, 3> slot_heads_;  ///< the largest share of any rank, by form
};

/// The smallest padded length that the layout over `ranks`, in `parts` (tokens.hpp), can take.
std::int64_t padded_sequence(std::int64_t sequence, token_layout, std::int64_t ranks,
                             std::int64_t parts = 1);

/// Whether the sequence, and each document, prefix or other sequence of keys that is laid out by itself, is a multiple of the
/// layout's unit.
bool fits_layout(const attention&, token_layout, std::int64_t ranks, std::int64_t parts = 1);

/// Throws infeasible where it is not, with the padding that would do and what it would waste, and the shorter sequence.
void require_layout(const attention&, token_layout, std::int64_t ranks, std::int64_t parts = 1);

/// Of layouts that may be chosen freely, the first of those for which the sequence needs least padding.
token_layout nearest_layout(const attention&, std::span<const token_layout>, std::int64_t ranks,
                            std::int64_t parts = 1);

}  // namespace attnsim
