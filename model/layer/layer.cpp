#include "model/layer/layer.hpp"

#include "model/cost/elementwise.hpp"
#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<recomputation, 3> recomputations{{{recomputation::none, "none"},
                                                       {recomputation::selective, "selective"},
                                                       {recomputation::full, "full"}}};

constexpr double number = half_bytes, wide = single_bytes;

// Operations that are much as one of the table is: norms without a residual, values copied, products' inputs cast to fp8 and
// transposed, logits to fp32 with their sum of exponentials and, backward, their gradient to bf16.
constexpr elementwise_cost latent_norm{elementwise_kind::norm, 2 * half_bytes, 30, 7},
    latent_norm_gradient{elementwise_kind::norm_gradient, 3 * half_bytes, 54, 11};
constexpr elementwise_cost copied_values{elementwise_kind::cast, 2 * half_bytes, 2 * half_bytes};
constexpr elementwise_cost plain_gradient{elementwise_kind::plain, 3 * half_bytes, 3 * half_bytes};
constexpr elementwise_cost to_fp8{elementwise_kind::plain, half_bytes + 2, half_bytes + 2};
constexpr elementwise_cost of_logits{elementwise_kind::plain, 10, 18, 4};

bool is_norm(elementwise_kind kind) {
  return kind == elementwise_kind::norm || kind == elementwise_kind::norm_gradient;
}

elementwise_kind activation(const transformer& m) {
  return m.gated ? elementwise_kind::gate : elementwise_kind::plain;
}
const elementwise_cost& activation_gradient(const transformer& m) {
  return m.gated ? cost_of(elementwise_kind::gate_gradient) : plain_gradient;
}

/// The layer's sizes on one device.
struct sizes {
  double tokens, local;  ///< of the micro-batch, and of them those that the device norms
  double hidden, query, key, value, output, inner;
  double query_latent, latent, latents,
      expanded;  ///< of latent attention; the same on all tensor ranks but for `expanded`
  explicit sizes(const layer_setting& s)
      : tokens(static_cast<double>(s.tokens)),
        local(s.sequence_parallel ? tokens / s.cut.tensor : tokens),
        hidden(static_cast<double>(s.model.hidden)),
        query(static_cast<double>(s.model.query_width()) / s.cut.tensor),
        key(static_cast<double>(s.model.key_width()) / s.cut.tensor),
        value(static_cast<double>(s.model.value_width()) / s.cut.tensor),
        output(static_cast<double>(s.model.output_width()) / s.cut.tensor),
        inner(static_cast<double>(s.model.intermediate) / s.cut.tensor),
        query_latent(static_cast<double>(s.model.query_latent)),
        latent(static_cast<double>(s.model.latent)),
        latents(static_cast<double>(s.model.latent_width())),
        expanded(static_cast<double>(s.model.expanded_width()) / s.cut.tensor) {}
};

class operation_list {
 public:
  explicit operation_list(const layer_setting& s) : s_(s), n_(s) {}

  void elementwise(std::string_view name, double elements, elementwise_kind kind) {
    elementwise(name, elements, cost_of(kind));
  }

  void elementwise(std::string_view name, double elements, const elementwise_cost& cost) {
    if (elements <= 0) return;
    const bool fused = s_.fused || (s_.fused_norms && is_norm(cost.kind));
    list_.push_back({.name = name,
                     .work = layer_work::elementwise,
                     .traffic = elements * (fused ? cost.fused : cost.eager),
                     .kernels = fused ? 1 : cost.eager_kernels,
                     .kind = cost.kind,
                     .eager = !fused});
  }

  void product(std::string_view name, double rows, double cols, double inner, double count = 1,
               double result_bytes = number) {
    list_.push_back({.name = name,
                     .work = layer_work::product,
                     .product = {rows, cols, inner, count, result_bytes},
                     .type = s_.linear});
  }

  /// The gradients of a product's input and of its weights.
  void gradients(std::string_view name, double rows, double cols, double inner, double count = 1) {
    cast("gradients to fp8", rows * cols * count);
    product(name, rows, inner, cols, count);
    product(name, cols, inner, rows, count, s_.adds_gradients ? 8 : number);
  }

  void cast(std::string_view name, double elements) {
    if (s_.linear == product_type::fp8) elementwise(name, elements, to_fp8);
  }

  void attention(pass_kind pass) {
    list_.push_back({.name = "attention", .work = layer_work::attention, .pass = pass});
  }

  void collective(std::string_view name, collective_kind kind, rank_group over, double bytes,
                  bool in_pieces = false) {
    if (size_of(s_.cut, over) < 2 || bytes <= 0) return;
    list_.push_back({.name = name,
                     .work = layer_work::collective,
                     .moves = kind,
                     .over = over,
                     .bytes = bytes,
                     .in_pieces = in_pieces});
  }

  void gather_tokens() {
    if (s_.sequence_parallel)
      collective("gather of tokens", collective_kind::all_gather, rank_group::tensor,
                 number * n_.tokens * n_.hidden, s_.overlaps_tensor);
  }
  void scatter_sums() {
    collective("sum of parts",
               s_.sequence_parallel ? collective_kind::reduce_scatter : collective_kind::all_reduce,
               rank_group::tensor, number * n_.tokens * n_.hidden, s_.overlaps_tensor);
  }
  void gather_latents() {
    if (s_.sequence_parallel)
      collective("gather of latents", collective_kind::all_gather, rank_group::tensor,
                 number * n_.tokens * n_.latents);
  }
  void scatter_latent_sums() {
    collective("sum of latents' parts",
               s_.sequence_parallel ? collective_kind::reduce_scatter : collective_kind::all_reduce,
               rank_group::tensor, number * n_.tokens * n_.latents);
  }

  std::vector<layer_operation> take() { return std::move(list_); }

 private:
  const layer_setting& s_;
  sizes n_;
  std::vector<layer_operation> list_;
};

double experts_a_rank(const layer_setting& s) {
  return static_cast<double>(s.model.experts) / s.cut.expert;
}

/// Of all experts that the busiest rank has.
double expert_tokens(const layer_setting& s) {
  return static_cast<double>(s.tokens) / s.cut.tensor * s.model.active_experts * s.expert_skew;
}

double exchanged_bytes(const layer_setting& s) {
  return number * expert_tokens(s) * static_cast<double>(s.model.hidden);
}

/// Of the experts that a rank has: tokens and their elements, and what products take.
struct expert_sizes {
  explicit expert_sizes(const layer_setting& s)
      : local(static_cast<double>(s.tokens) / s.cut.tensor),
        hidden(static_cast<double>(s.model.hidden)),
        tokens(expert_tokens(s)),
        count(experts_a_rank(s)),
        rows(tokens / count),
        width(static_cast<double>(s.model.expert_intermediate)),
        before(s.model.products_before_activation()),
        shared(static_cast<double>(s.model.shared_intermediate)) {}
  double local, hidden, tokens, count, rows, width, before, shared;
};

/// Queries, keys and values from latents. Recomputed selectively, latents are kept.
void latent_projections(operation_list& list, const layer_setting& s, bool selective) {
  const sizes n(s);
  if (n.query_latent == 0 && !selective) {
    list.gather_tokens();
    list.product("queries", n.tokens, n.query, n.hidden);
  }
  if (!selective) list.product("latents", n.local, n.latents, n.hidden);
  list.elementwise("norm of latents", n.local * (n.query_latent + n.latent), latent_norm);
  list.cast("inputs to fp8", n.local * (n.query_latent + n.latent));
  list.gather_latents();
  if (n.query_latent > 0) list.product("queries", n.tokens, n.query, n.query_latent);
  list.product("keys and values", n.tokens, n.expanded, n.latent);
}

void attention_forward(operation_list& list, const layer_setting& s, bool again) {
  const sizes n(s);
  const bool selective = again && s.recomputed == recomputation::selective;
  list.elementwise("norm", n.local * n.hidden, elementwise_kind::norm);
  list.cast("inputs to fp8", n.local * n.hidden);
  if (n.latent > 0) {
    latent_projections(list, s, selective);
  } else {
    list.gather_tokens();
    // queries and values are kept, keys and the output are computed again
    list.product("projections", n.tokens, selective ? n.key : n.query + n.key + n.value, n.hidden);
  }
  list.elementwise("rotation", n.tokens * (n.query + n.key), elementwise_kind::rotation);
  if (s.copies_values && !selective) list.elementwise("values", n.tokens * n.value, copied_values);
  if (selective && n.latent > 0) return;
  if (!selective) list.attention(pass_kind::forward);
  if (!selective) list.cast("inputs to fp8", n.tokens * n.output);
  list.product("output", n.tokens, n.hidden, n.output);
  list.scatter_sums();
}

void dense_forward(operation_list& list, const layer_setting& s, bool again) {
  const sizes n(s);
  const auto& m = s.model;
  const bool selective = again && s.recomputed == recomputation::selective;
  const double before =
      selective ? m.products_before_activation() - 1 : m.products_before_activation();
  list.gather_tokens();
  if (before > 0) list.product("MLP up", n.tokens, before * n.inner, n.hidden);
  list.elementwise("activation", n.tokens * n.inner, activation(m));
  list.cast("inputs to fp8", n.tokens * n.inner);
  if (selective) return;
  list.product("MLP down", n.tokens, n.hidden, n.inner);
  list.scatter_sums();
}

void experts_forward(operation_list& list, const layer_setting& s) {
  const auto& m = s.model;
  const auto [local, hidden, tokens, count, rows, width, before, shared] = expert_sizes(s);
  list.product("router", local, m.experts, hidden);
  list.elementwise("order of tokens", tokens * hidden, elementwise_kind::plain);
  list.collective("tokens to experts", collective_kind::all_to_all, rank_group::expert,
                  exchanged_bytes(s));
  list.product("experts up", rows, before * width, hidden, count);
  list.elementwise("activation", tokens * width, activation(m));
  list.product("experts down", rows, hidden, width, count);
  list.collective("tokens from experts", collective_kind::all_to_all, rank_group::expert,
                  exchanged_bytes(s));
  list.elementwise("sum of experts", tokens * hidden, elementwise_kind::plain);
  if (shared == 0) return;
  list.product("shared expert up", local, before * shared, hidden);
  list.elementwise("activation", local * shared, activation(m));
  list.product("shared expert down", local, hidden, shared);
}

void experts_backward(operation_list& list, const layer_setting& s) {
  const auto& m = s.model;
  const auto [local, hidden, tokens, count, rows, width, before, shared] = expert_sizes(s);
  list.elementwise("sum of experts", tokens * hidden, elementwise_kind::plain);
  list.collective("tokens to experts", collective_kind::all_to_all, rank_group::expert,
                  exchanged_bytes(s));
  list.gradients("experts down", rows, hidden, width, count);
  list.elementwise("activation", tokens * width, activation_gradient(m));
  list.gradients("experts up", rows, before * width, hidden, count);
  list.collective("tokens from experts", collective_kind::all_to_all, rank_group::expert,
                  exchanged_bytes(s));
  list.elementwise("order of tokens", tokens * hidden, elementwise_kind::plain);
  list.gradients("router", local, m.experts, hidden);
  if (shared == 0) return;
  list.gradients("shared expert down", local, hidden, shared);
  list.elementwise("activation", local * shared, activation_gradient(m));
  list.gradients("shared expert up", local, before * shared, hidden);
}

void mlp_forward(operation_list& list, const layer_setting& s, bool again) {
  const sizes n(s);
  list.elementwise("norm", n.local * n.hidden, elementwise_kind::norm);
  list.cast("inputs to fp8", n.local * n.hidden);
  if (s.model.experts > 0) return experts_forward(list, s);
  dense_forward(list, s, again);
}

/// The gradient of what was summed over tensor ranks is gathered, and the input with it: weights' gradients need all tokens.
void mlp_backward(operation_list& list, const layer_setting& s) {
  const sizes n(s);
  if (s.model.experts > 0) {
    experts_backward(list, s);
  } else {
    list.gather_tokens();
    list.gradients("MLP down", n.tokens, n.hidden, n.inner);
    list.elementwise("activation", n.tokens * n.inner, activation_gradient(s.model));
    list.gather_tokens();
    list.gradients("MLP up", n.tokens, s.model.products_before_activation() * n.inner, n.hidden);
    list.scatter_sums();
  }
  list.elementwise("norm", n.local * n.hidden, elementwise_kind::norm_gradient);
}

void latent_gradients(operation_list& list, const layer_setting& s) {
  const sizes n(s);
  list.gather_latents();
  list.gradients("keys and values", n.tokens, n.expanded, n.latent);
  if (n.query_latent > 0) list.gradients("queries", n.tokens, n.query, n.query_latent);
  list.scatter_latent_sums();
  list.elementwise("norm of latents", n.local * (n.query_latent + n.latent), latent_norm_gradient);
  list.gradients("latents", n.local, n.latents, n.hidden);
  if (n.query_latent > 0) return;
  list.gather_tokens();
  list.gradients("queries", n.tokens, n.query, n.hidden);
  list.scatter_sums();
}

void attention_backward(operation_list& list, const layer_setting& s) {
  const sizes n(s);
  list.gather_tokens();
  list.gradients("output", n.tokens, n.hidden, n.output);
  list.attention(pass_kind::backward);
  list.elementwise("rotation", n.tokens * (n.query + n.key), elementwise_kind::rotation);
  if (s.copies_values) list.elementwise("values", n.tokens * n.value, copied_values);
  if (n.latent > 0) {
    latent_gradients(list, s);
  } else {
    list.gather_tokens();
    list.gradients("projections", n.tokens, n.query + n.key + n.value, n.hidden);
    list.scatter_sums();
  }
  list.elementwise("norm", n.local * n.hidden, elementwise_kind::norm_gradient);
}

/// A collective over all that have the same parameters.
std::vector<layer_operation> over_parameters(const layer_setting& s, std::string_view name,
                                             collective_kind kind, double element_bytes) {
  operation_list list(s);
  list.collective(name, kind, rank_group::replicas, element_bytes * dense_parameters_a_rank(s));
  list.collective(name, kind, rank_group::expert_replicas,
                  element_bytes * expert_parameters_a_rank(s));
  return list.take();
}

/// The setting of the output layer: a plain product.
layer_setting in_half(layer_setting s) {
  s.linear = product_type::half;
  return s;
}

double logits(const layer_setting& s) {
  return static_cast<double>(s.tokens) * static_cast<double>(s.model.vocabulary) / s.cut.tensor;
}

/// What a layer keeps of its MLP.
double kept_of_mlp(const layer_setting& s, double input_bytes) {
  const sizes n(s);
  const auto& m = s.model;
  const double before = m.products_before_activation();
  if (m.experts == 0) return n.tokens * n.inner * (number * before + input_bytes);
  const double width = static_cast<double>(m.expert_intermediate);
  const double shared = static_cast<double>(m.shared_intermediate) * n.tokens / s.cut.tensor;
  return expert_tokens(s) * (input_bytes * n.hidden + width * (number * before + input_bytes)) +
         shared * (number * before + input_bytes);
}

/// What the second of an MLP's products put out, or the only one before its activation.
double one_product_of_mlp(const layer_setting& s) {
  const sizes n(s);
  return number * (s.model.experts == 0
                       ? n.tokens * n.inner
                       : expert_tokens(s) * static_cast<double>(s.model.expert_intermediate));
}

double kept_by_all(const layer_setting& s) {
  const sizes n(s);
  const bool fp8 = s.linear == product_type::fp8;
  const double input_bytes = fp8 ? 1 : number;  // of a product, kept as it went in
  const double statistics = 4 * static_cast<double>(s.model.shape.heads) / s.cut.tensor;
  const double output = n.output * (number + (fp8 ? 1 : 0));  // attention's backward reads it too
  return n.local * (n.hidden * 2 + n.latents) * (number + input_bytes) +
         n.tokens * (number * (n.query + n.key + n.value) + output + statistics) +
         kept_of_mlp(s, input_bytes);
}

}  // namespace

std::string_view name_of(recomputation r) {
  return find_name(recomputations, r);
}
recomputation parse_recomputation(std::string_view text) {
  return find_value(recomputations, text);
}

layer_setting without_experts(layer_setting s) {
  s.model.experts = s.model.active_experts = 0;
  s.model.shared_intermediate = 0;
  return s;
}

std::vector<layer_operation> forward_operations(const layer_setting& s) {
  operation_list list(s);
  attention_forward(list, s, false);
  mlp_forward(list, s, false);
  return list.take();
}

std::vector<layer_operation> backward_operations(const layer_setting& s) {
  operation_list list(s);
  if (s.recomputed != recomputation::none) {
    attention_forward(list, s, true);
    mlp_forward(list, s, true);
  }
  mlp_backward(list, s);
  attention_backward(list, s);
  return list.take();
}

std::vector<layer_operation> parameter_gathers(const layer_setting& s, double element_bytes) {
  return over_parameters(s, "gather of parameters", collective_kind::all_gather, element_bytes);
}

std::vector<layer_operation> gradient_sums(const layer_setting& s, collective_kind kind) {
  return over_parameters(s, "sum of gradients", kind, wide);
}

std::vector<layer_operation> gradient_casts(const layer_setting& s) {
  operation_list list(s);
  if (!s.adds_gradients)
    list.elementwise(
        "gradients to fp32",
        dense_parameters_a_rank(s) - s.model.norm_parameters() + expert_parameters_a_rank(s),
        elementwise_kind::cast);
  return list.take();
}

std::vector<layer_operation> norm_gradient_sums(const layer_setting& s) {
  operation_list list(s);
  if (s.sequence_parallel)
    list.collective("sum of norms' gradients", collective_kind::all_reduce, rank_group::tensor,
                    wide * s.model.norm_parameters());
  return list.take();
}

std::vector<layer_operation> loss_forward(const layer_setting& given) {
  const auto s = in_half(given);
  const sizes n(s);
  operation_list list(s);
  list.elementwise("norm", n.local * n.hidden, elementwise_kind::norm);
  list.gather_tokens();
  list.product("output layer", n.tokens, logits(s) / n.tokens, n.hidden);
  list.elementwise("loss", logits(s), of_logits);
  return list.take();
}

std::vector<layer_operation> loss_backward(const layer_setting& given) {
  const auto s = in_half(given);
  const sizes n(s);
  operation_list list(s);
  list.elementwise("loss", logits(s), of_logits);
  list.gradients("output layer", n.tokens, logits(s) / n.tokens, n.hidden);
  list.scatter_sums();
  list.elementwise("norm", n.local * n.hidden, elementwise_kind::norm_gradient);
  return list.take();
}

double kept_bytes(const layer_setting& s) {
  const sizes n(s);
  const double input = number * n.local * n.hidden;
  const double statistics = 4 * static_cast<double>(s.model.shape.heads) / s.cut.tensor;
  switch (s.recomputed) {
    case recomputation::none:
      return kept_by_all(s);
    case recomputation::selective:
      return 2 * input + number * n.local * n.latents +
             n.tokens *
                 (number * (n.output + (n.latent > 0 ? 0 : n.query + n.value)) + statistics) +
             one_product_of_mlp(s);
    case recomputation::full:
      return input;
  }
  return 0;
}

double working_bytes(const layer_setting& s) {
  const sizes n(s);
  const double gathered = 2 * number * n.tokens * n.hidden;
  const double width = s.model.experts == 0
                           ? n.tokens * n.inner
                           : expert_tokens(s) * static_cast<double>(s.model.expert_intermediate);
  return kept_by_all(s) - kept_bytes(s) + gathered +
         number * s.model.products_before_activation() * width;
}

/// What a layer's forward pass holds at most, in its MLP, beside what it keeps.
double passing_bytes(const layer_setting& s) {
  const sizes n(s);
  const bool in_pieces = s.cut.tensor > 1 && s.overlaps_tensor;
  const double end = in_pieces ? 0 : number * n.tokens * n.hidden;  // of all tensor ranks
  const double mlp = kept_of_mlp(s, s.linear == product_type::fp8 ? 1 : number);
  switch (s.recomputed) {
    case recomputation::none:
      return end;
    case recomputation::selective:
      return 2 * end + mlp - one_product_of_mlp(s);
    case recomputation::full:
      return 2 * end + mlp;
  }
  return 0;
}

double loss_bytes(const layer_setting& s) {
  const sizes n(s);
  constexpr double on_one = 2 + 4 + 4 + 4, over_ranks = 2 + 4 + 4 + 4 + 4, gradient_in_storage = 4;
  const double forms =
      (s.cut.tensor > 1 ? over_ranks : on_one) + (s.fused ? 0 : gradient_in_storage);
  const double left = passing_bytes(s);
  return logits(s) * forms + number * n.tokens * n.hidden + (left < logits(s) * wide ? left : 0);
}

double dense_parameters_a_rank(const layer_setting& s) {
  const auto& m = s.model;
  const double attention = m.latent_parameters() + m.norm_parameters() +
                           (m.attention_parameters() - m.latent_parameters()) / s.cut.tensor;
  if (m.experts == 0) return attention + m.dense_parameters(m.intermediate) / s.cut.tensor;
  return attention + static_cast<double>(m.hidden) * m.experts +
         m.dense_parameters(m.shared_intermediate);
}

double expert_parameters_a_rank(const layer_setting& s) {
  return s.model.experts == 0 ? 0 : experts_a_rank(s) * s.model.expert_parameters();
}

}  // namespace attnsim
