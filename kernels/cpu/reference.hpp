// The oracle: attention over a whole sequence on one device, in fp64, straight from its definition.
// It shares no code with the kernels and knows no blocks or strides: every token says its position,
// so any layout of tokens over ranks can be checked by listing positions in that layout's order.
// Cost: one exp and 2 * head_dim multiplications a pair, some 1e9 of these a second; to check a
// long sequence take a sample of its query tokens with all keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attnsim::kernels::cpu {

/// Query q sees key k iff not causal, or position k <= position q and (with a window) k > q -
/// window, or k is one of its document's first that are kept; and, where documents are given, both are in the same one. Arrays are dense, [batch][token][head][d], tokens in the order of the positions.
struct reference_attention {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;  ///< of query and key
  std::int64_t v_head_dim = 0;  ///< of value and output; 0: as head_dim
  std::vector<std::int64_t> query_positions;
  std::vector<std::int64_t> key_positions;
  bool causal = false;
  std::int64_t window = 0;         ///< 0: none
  std::int64_t kept_first = 0;     ///< first tokens of a document that it does not hide
  double scale = 0;                ///< 0: 1 / sqrt(head_dim)
  std::vector<double> sinks = {};  ///< a logit a query head; empty: none
  std::vector<std::int64_t> document_ends = {};  ///< first position after each; empty: one document
  /// Of each batch entry, by how much it is shorter: its queries stand so much earlier, and so do its last keys. Empty: none is.
  std::vector<std::int64_t> shorter = {};

  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
};

struct reference_output {
  std::vector<double> output;  ///< [batch][query][heads][v_head_dim]
  std::vector<double> lse;     ///< [batch][query][heads], -infinity for a row that sees nothing
};

struct reference_gradients {
  std::vector<double> query;
  std::vector<double> key;
  std::vector<double> value;
};

/// Errors: std::invalid_argument if an array's size is not its shape's or kv_heads does not divide
/// heads.
reference_output reference_forward(const reference_attention& attention,
                                   std::span<const double> query, std::span<const double> key,
                                   std::span<const double> value);

/// Gradients of sum(output * output_gradient). With a sample of the query tokens, those of key and
/// value are the sample's part.
reference_gradients reference_backward(const reference_attention& attention,
                                       std::span<const double> query, std::span<const double> key,
                                       std::span<const double> value,
                                       std::span<const double> output_gradient);

}  // namespace attnsim::kernels::cpu
