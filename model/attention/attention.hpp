// What is to be computed: one attention layer over all its heads, for a batch of sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"
#include "model/units.hpp"

namespace attnsim {

enum class mask_kind { full, causal };
/// fp8: queries, keys, values and probabilities in e4m3 (kernels/float8.hpp), backward what products read; all else in bf16.
enum class data_type { bf16, fp16, fp32, fp8 };
/// Queries and what is laid out as they are (outputs, row statistics), or keys and values.
enum class token_side { queries, keys };
/// `recompute`: forward without what backward needs, then both; as training with recomputed activations.
enum class pass_kind { forward, backward, both, recompute };

struct attention {
  std::int64_t batch = 1;
  std::int64_t heads = 0;       ///< query heads
  std::int64_t kv_heads = 0;    ///< divides heads
  std::int64_t head_dim = 128;  ///< elements of a head of Q and K
  std::int64_t v_head_dim = 0;  ///< of V and O; 0: as many
  std::int64_t sequence = 0;    ///< tokens, including the padding; with a prefix the new ones
  std::int64_t padding =
      0;  ///< trailing tokens that carry no data: sent, but neither attended to nor computed
  std::int64_t prefix = 0;  ///< cached tokens before the sequence: keys and values only
  /// Of each sequence of the batch, requests of different lengths; prefix is the longest. Empty: all alike.
  std::vector<std::int64_t> prefixes = {};
  /// Tokens of another sequence whose keys and values are attended to (cross-attention); 0: the same sequence.
  std::int64_t kv_sequence = 0;
  mask_kind mask = mask_kind::causal;
  std::int64_t window = 0;  ///< sliding window in tokens, causal masks only; 0: none
  /// First tokens of each document that stay visible when the window has moved on (StreamingLLM, arXiv 2309.17453).
  std::int64_t kept_first = 0;
  /// Attention sinks: a learned logit a query head stands in the softmax's denominator, as one more key without a value.
  bool sinks = false;
  /// Latent attention with its projections absorbed, as it decodes: one K/V head, whose values are the first v_head_dim elements
  /// of its keys, stored and sent once.
  bool latent = false;
  /// Latent attention as it trains and prefills: elements of a token's latent, of which a product makes the values and keys of all
  /// heads, and elements beside it that are the last of every head's key. 0: keys and values come from elsewhere.
  std::int64_t latent_rank = 0, rotary = 0;
  data_type dtype = data_type::bf16;
  /// Of queries, keys and values between ranks, where it is not theirs (schedule/wire_type.hpp).
  std::optional<data_type> wire_dtype = {};
  /// Lengths of documents packed into the sequence (cu_seqlens): a token sees its own document only. Empty: one.
  std::vector<std::int64_t> documents = {};
  /// What stands in for what, one line each: told with every answer.
  std::vector<std::string> notes = {};
  /// Tokens of each chunk where ranks have unequal shares of them: chunks have room for the longest, and what a shorter one leaves
  /// of it is padding (tokens.hpp, with_shares). Empty: equal.
  std::vector<std::int64_t> shares = {};

  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  std::int64_t group_size() const { return heads / kv_heads; }  ///< g, query heads per K/V head
  /// Tokens of a side, the padding included. Keys of a sequence with a prefix are at positions from 0 on, its queries from
  /// `prefix` on.
  std::int64_t tokens(token_side side) const {
    if (side == token_side::queries) return sequence;
    return kv_sequence > 0 ? kv_sequence : prefix + sequence;
  }

  friend bool operator==(const attention&, const attention&) = default;
};

std::int64_t element_bytes(data_type);
/// Of outputs and gradients.
data_type result_type(data_type);
/// Of queries, keys and values as their ranks have them: computing in fp8 with a wider type between ranks rounds on arrival.
data_type home_type(const attention&);

/// The first token of each document, ascending, and the end of the last: the padding is after it.
std::vector<std::int64_t> document_bounds(const attention&, token_side = token_side::queries);

/// One sequence of a batch of several lengths.
attention request_of(const attention&, std::size_t which);

/// Whether 64 bits have room for its pairs of tokens, its bytes, and sums of several tensors.
bool is_countable(const attention&);

/// Throws input_error for sizes below one or beyond what can be counted, and documents that do not add up to the sequence, infeasible when kv_heads does not divide heads. A prefix or another sequence's keys go with one document,
/// the latter with a full mask.
void check(const attention&);

/// A pass was asked for that does not exist: there is a forward pass alone. `why` goes on behind "expected forward".
class forward_only : public input_error {
 public:
  forward_only(pass_kind, const std::string& why);

  const std::string& why() const { return why_; }

 private:
  std::string why_;
};

/// Cached tokens have no gradients, nor has absorbed latent attention: throws forward_only for any other pass.
void check(const attention&, pass_kind);

std::string_view name_of(mask_kind);
std::string_view name_of(data_type);
std::string_view name_of(pass_kind);

/// The value called `text`. Throws std::invalid_argument that lists the names.
mask_kind parse_mask(std::string_view text);
data_type parse_data_type(std::string_view text);
pass_kind parse_pass(std::string_view text);

}  // namespace attnsim
