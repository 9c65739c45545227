// Which tokens of the sequence a block holds, and the kernel calls that attention between two such blocks takes.
//
// A block's tokens are a list of arithmetic progressions in the order in which they lie in memory (a CuTe layout of
// shape (ranges, count) with a stride a range). The ways to give a sequence of N tokens to P ranks are
//   contiguous     rank p holds N/P consecutive tokens
//   zigzag         2P pieces, rank p holds pieces p and 2P-1-p: equal causal work for every rank (Megatron DualChunkSwap);
//                  of packed documents, such pieces of each (Transformer Engine's thd format, ring-flash-attention's varlen)
//   zigzag-stream  the same of the whole sequence, whatever documents are packed into it
//   striped        rank p holds tokens p, p+P, p+2P, ... (Striped Attention, arXiv 2311.09431; Attention2D's 1-D cyclic)
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/attention/attention.hpp"
#include "model/attention/block_mask.hpp"

namespace attnsim {

struct token_range {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;

  friend bool operator==(const token_range&, const token_range&) = default;
};

using token_set = std::vector<token_range>;

enum class token_layout { contiguous, zigzag, zigzag_stream, striped };

/// Either of the two.
bool is_zigzag(token_layout);

std::string_view name_of(token_layout);
token_layout parse_token_layout(std::string_view text);

/// A sequence must be a multiple of this to be laid out over `ranks`: ranks, or 2 ranks for zigzag, and so must each of its
/// documents for zigzag tokens of each. With `parts` the
/// layout is over ranks / parts and each of its chunks is cut into that many consecutive ones, as USP does.
std::int64_t layout_unit(token_layout, std::int64_t ranks, std::int64_t parts = 1);

/// The tokens of chunk `chunk` of `chunks` equal chunks. Precondition: sequence is a multiple of layout_unit.
token_set tokens_of(token_layout, std::int64_t sequence, std::int64_t chunks, std::int64_t chunk);

/// The same of a sequence that may hold documents and padding, which is dealt out like one more document, or whose chunks have
/// unequal shares. Positions count from the first token of the prefix, which is not among them.
token_set tokens_of(token_layout, const attention&, std::int64_t chunks, std::int64_t chunk);

/// The problem with its tokens shared out over chunks in proportion to `weights`, each a multiple of `unit` tokens and at least
/// one: contiguous, or zigzag, where each chunk has a piece of its size at both ends, so that causal work goes with the size.
/// Every chunk has room for the longest, filled up with padding; the sequence grows by it. Throws infeasible for other layouts,
/// documents, a prefix, keys of another sequence, a window, padding, and fewer tokens than chunks have units.
attention with_shares(attention, const std::vector<int>& weights, token_layout, std::int64_t unit);

/// The keys of chunk `chunk`: its shard of the prefix, laid out by itself as the prefill left it, then that of the sequence; or
/// its shard of the other sequence. Precondition: each is a multiple of layout_unit.
token_set keys_of(token_layout, const attention&, std::int64_t chunks, std::int64_t chunk);

/// The keys of chunk `chunk` where they, the prefix and the sequence, are laid out as one and need not be a multiple of
/// layout_unit: the last chunks are shorter.
token_set cache_shard(token_layout, const attention&, std::int64_t chunks, std::int64_t chunk);
/// Tokens of the longest.
std::int64_t cache_shard_tokens(token_layout, const attention&, std::int64_t chunks);

/// All of a side, in order.
token_set all_tokens(const attention&, token_side);

/// The `count` tokens from place `first` of the list on.
token_set slice(const token_set&, std::int64_t first, std::int64_t count);

std::int64_t size(const token_set&);

/// Those at positions below `end`.
token_set before(const token_set&, std::int64_t end);

/// Neighbouring ranges that continue each other joined into one.
token_set joined(const token_set&);

/// The same tokens in ascending order of position, as few ranges as possible: interleaved strides become one range.
token_set ascending(const token_set&);

/// Consecutive tokens that see each other only, and in how many places such tokens have the same tiles.
struct token_document {
  std::int64_t begin = 0, end = 0;
  std::int64_t times = 1;
};

/// The documents that may have tokens of both sets, ascending. `bounds`: of document_bounds().
std::vector<token_document> shared_documents(const token_set& queries, const token_set& keys,
                                             const std::vector<std::int64_t>& bounds);

/// One kernel call: rows row_first, row_first + row_step, ... of the query block against columns of the key block.
struct tile {
  std::int64_t row_first = 0, rows = 0, row_step = 1;
  std::int64_t col_first = 0, cols = 0, col_step = 1;
  block_mask mask;
  std::int64_t times = 1;     ///< as its document, or as its request in a batch of several lengths
  std::int64_t request = -1;  ///< of a batch of several lengths, the only sequence that it is of
  bool adds_rows = false;     ///< o, lse or d_q of its rows already hold something
  bool adds_cols = false;     ///< d_k, d_v of its columns already hold something

  std::int64_t pairs() const { return visible_pairs(mask, rows, cols); }
};

/// What the results of a kernel's first call already hold.
struct held_results {
  bool rows = false, cols = false;
};

/// The kernel calls that compute attention of `queries` to `keys` in some documents: nothing where no key is visible, one
/// call where the whole rectangle is; rectangles of neighbouring ranges are merged. A causal call needs equal strides on both
/// sides; where they differ the finer side is split into strided calls, unless the kernel takes `staircase` masks. Ascending
/// tokens against themselves (a zigzag chunk's own pair) are one causal call a document, also with keys
/// of earlier tokens before them. Documents are tiles of their own,
/// as a variable-length kernel has them in one call. First tokens that a window keeps are calls of their own.
std::vector<tile> kernel_tiles(const token_set& queries, const token_set& keys, const attention&,
                               bool staircase, const std::vector<token_document>& documents,
                               held_results = {});
/// The same in all documents.
std::vector<tile> kernel_tiles(const token_set& queries, const token_set& keys, const attention&,
                               bool staircase);
/// Of them those of first tokens that a window keeps, where the sequence is one document.
std::vector<tile> kept_tiles(const token_set& queries, const token_set& keys, const attention&,
                             bool staircase, held_results = {});

/// Number of (query, key) pairs that are visible: the exact work.
std::int64_t visible_pairs(const token_set& queries, const token_set& keys, const attention&);
/// Of all queries and all keys of a sequence, of the longest where they differ. And of the whole batch.
std::int64_t visible_pairs(const attention&);
std::int64_t visible_pairs_of_batch(const attention&);

}  // namespace attnsim
