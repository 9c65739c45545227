// The operations of a transformer's layer on one device, in order, for one micro-batch: what a training or prefill step repeats.
// Attention is one of them, predicted by its own schedule; the others are matrix products, elementwise operations counted by
// their bytes, and collectives.
//
// T tokens of the micro-batch on a context rank, h hidden, q and k widths of queries and keys, f of the MLP, t tensor ranks.
//
//   forward    norm                  elementwise T/t
//              gather of tokens      all-gather over tensor ranks, T h
//              projections           T x (q + 2 k)/t x h
//              rotation              elementwise
//              attention
//              output                T x h x q/t
//              scatter of sums       reduce-scatter over tensor ranks, T h
//              norm, gather
//              MLP                   T x (2) f/t x h, activation, T x h x f/t
//              scatter
//              with experts instead  router, all-to-all of T/t tokens x active experts over expert ranks, grouped products, and back
//              of latents            projections to latents of T/t tokens, their norm, and a gather of them in place of the
//                                    tokens; from there queries, and keys and values, T x (...)/t x latent
//   backward   each product twice: the gradient of its input and of its weights. A gather becomes a scatter of gradients and
//              the other way round; inputs that were gathered are gathered again (Korthikanti et al., arXiv 2205.05198).
//
// Without sequence parallelism all-reduces stand for the pairs of gather and scatter, and every tensor rank does the norms of
// all tokens.
//
// Elementwise bytes an element, 2 a number: each operation reads its inputs and writes its results once where kernels are fused
// (Transformer Engine, torch.compile); of an eager framework each step of a norm, rotation or activation, in fp32, by itself.
#pragma once

#include <string_view>
#include <vector>

#include "model/cost/matmul.hpp"
#include "model/layer/degrees.hpp"
#include "model/layer/transformer.hpp"

namespace attnsim {

/// What backward computes again instead of keeping it.
enum class recomputation {
  none,
  selective,  ///< all but what attention and every second matrix product put out (PyTorch's per-operation checkpointing)
  full,       ///< the whole layer from its input
};
std::string_view name_of(recomputation);
recomputation parse_recomputation(std::string_view);

struct layer_setting {
  transformer model;
  degrees cut;
  std::int64_t tokens = 0;  ///< T
  product_type linear = product_type::half;
  recomputation recomputed = recomputation::none;
  bool sequence_parallel = true;
  bool overlaps_tensor =
      false;          ///< collectives of tensor ranks run in pieces beside the products around them
  bool fused = true;  ///< elementwise kernels
  bool fused_norms =
      false;  ///< where others are not, as PyTorch's own norm (torch.nn.RMSNorm) has it
  bool adds_gradients =
      true;                ///< weights' gradients are added up in fp32; else written once in bf16
  double expert_skew = 1;  ///< tokens of the busiest expert rank over the mean
  /// Values are copied from the projections to where attention reads them, and their gradients back; frameworks give their
  /// kernels strides instead.
  bool copies_values = false;
};

enum class layer_work { product, attention, elementwise, collective };

struct layer_operation {
  std::string_view name;
  layer_work work = layer_work::elementwise;
  matrix_product product = {};
  product_type type = product_type::half;
  double traffic = 0;  ///< bytes read and written
  int kernels = 1;     ///< that move them
  elementwise_kind kind = elementwise_kind::plain;
  bool eager = false;                   ///< its kernels are an eager framework's steps
  pass_kind pass = pass_kind::forward;  ///< attention's
  collective_kind moves = collective_kind::all_gather;
  rank_group over = rank_group::tensor;
  double bytes = 0;  ///< the buffer, as collective.hpp counts it
  bool in_pieces =
      false;  ///< beside the product that follows (all-gather) or comes before (reduce-scatter)
};

/// Of the first layers of a model with experts, whose MLP is dense.
layer_setting without_experts(layer_setting);

std::vector<layer_operation> forward_operations(const layer_setting&);
/// With what is recomputed first.
std::vector<layer_operation> backward_operations(const layer_setting&);

/// What ranks with the same parameters do around the layer's operations: before each pass they gather its parameters, of so many
/// bytes each, and after backward they sum their gradients, in fp32. Those of experts apart.
std::vector<layer_operation> parameter_gathers(const layer_setting&, double element_bytes);
std::vector<layer_operation> gradient_sums(const layer_setting&, collective_kind);
/// Before that sum, gradients that were written once in bf16 become fp32 (FSDP's reduce_dtype).
std::vector<layer_operation> gradient_casts(const layer_setting&);
/// Gradients of norms, of tokens that are cut over tensor ranks: a step's frameworks add them up once, of all layers together
/// (Megatron's finalize_model_grads).
std::vector<layer_operation> norm_gradient_sums(const layer_setting&);

/// The output layer and the loss of T tokens, vocabulary over tensor ranks; in bf16 whatever the linear layers are.
std::vector<layer_operation> loss_forward(const layer_setting&);
std::vector<layer_operation> loss_backward(const layer_setting&);

/// Bytes that one micro-batch's forward pass of a layer keeps for backward, on a device.
double kept_bytes(const layer_setting&);
/// Bytes that a layer holds at most beside what it keeps: of the recomputed layer, where there is one.
double working_bytes(const layer_setting&);
/// Of the loss: the output layer's input, and logits in bf16, in fp32, their softmax and its gradient; over tensor ranks in bf16, and
/// in fp32 their softmax, its gradient, exponentials and what both add up to (PyTorch, torch/distributed/tensor/parallel/loss.py).
/// What was in bf16 is gone by then, as is what the last layer passed on, but an allocator keeps their blocks; logits fit into none.
double loss_bytes(const layer_setting&);

/// Parameters of one layer on a device, those of experts apart: they have replicas of their own.
double dense_parameters_a_rank(const layer_setting&);
double expert_parameters_a_rank(const layer_setting&);

}  // namespace attnsim
