#include "model/layer/layer.hpp"

#include <gmock/gmock.h>

namespace attnsim {
namespace {

using testing::ElementsAre;

layer_setting llama2(int tensor = 1) {
  return {.model = read_transformer("llama2-7b"), .cut = {.tensor = tensor}, .tokens = 4096};
}

double product_operations(const std::vector<layer_operation>& list) {
  double total = 0;
  for (const auto& op : list) total += op.product.operations().value();
  return total;
}

std::vector<std::string_view> names(const std::vector<layer_operation>& list) {
  std::vector<std::string_view> all;
  for (const auto& op : list) all.push_back(op.name);
  return all;
}

double moved(const std::vector<layer_operation>& list, collective_kind kind, rank_group over) {
  double bytes = 0;
  for (const auto& op : list) {
    if (op.work == layer_work::collective && op.moves == kind && op.over == over) bytes += op.bytes;
  }
  return bytes;
}

TEST(layer, forward_multiplies_every_parameter_once_and_backward_twice) {
  // 2 x 4096 tokens x (4 x 4096^2 + 3 x 4096 x 11008)
  constexpr double forward = 2.0 * 4096 * 202375168;
  EXPECT_EQ(product_operations(forward_operations(llama2())), forward);
  EXPECT_EQ(product_operations(backward_operations(llama2())), 2 * forward);
  EXPECT_EQ(product_operations(forward_operations(llama2(4))), forward / 4);
  auto full = llama2();
  full.recomputed = recomputation::full;
  EXPECT_EQ(product_operations(backward_operations(full)), 3 * forward);
}

TEST(layer, selective_recomputation_repeats_every_second_product) {
  auto s = llama2();
  s.recomputed = recomputation::selective;
  // keys, output and the second of the three of the MLP
  constexpr double again = 2.0 * 4096 * (2 * 4096.0 * 4096 + 4096.0 * 11008);
  EXPECT_EQ(product_operations(backward_operations(s)),
            2 * product_operations(forward_operations(s)) + again);
}

TEST(layer, order_of_one_device) {
  EXPECT_THAT(names(forward_operations(llama2())),
              ElementsAre("norm", "projections", "rotation", "attention", "output", "norm",
                          "MLP up", "activation", "MLP down"));
}

TEST(layer, values_are_copied_where_attention_wants_them_elsewhere) {
  auto s = llama2();
  s.copies_values = true;
  EXPECT_THAT(names(forward_operations(s)),
              ElementsAre("norm", "projections", "rotation", "values", "attention", "output",
                          "norm", "MLP up", "activation", "MLP down"));
  EXPECT_EQ(forward_operations(s)[3].traffic, 4.0 * 4096 * 4096);
}

TEST(layer, gradients_written_in_bf16_become_fp32) {
  auto s = llama2();
  EXPECT_TRUE(gradient_casts(s).empty());
  s.adds_gradients = false;
  ASSERT_EQ(gradient_casts(s).size(), 1u);
  EXPECT_EQ(gradient_casts(s)[0].traffic, 6.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008));
}

TEST(layer, tensor_ranks_add_up_gradients_of_norms) {
  EXPECT_TRUE(norm_gradient_sums(llama2()).empty());
  ASSERT_EQ(norm_gradient_sums(llama2(2)).size(), 1u);
  EXPECT_EQ(norm_gradient_sums(llama2(2))[0].moves, collective_kind::all_reduce);
  EXPECT_EQ(norm_gradient_sums(llama2(2))[0].bytes, 4.0 * 2 * 4096);
}

TEST(layer, tensor_ranks_gather_and_scatter_the_tokens_of_both_halves) {
  constexpr double tokens = 2.0 * 4096 * 4096;  // bytes of T x hidden in bf16
  const auto forward = forward_operations(llama2(2)), backward = backward_operations(llama2(2));
  EXPECT_EQ(moved(forward, collective_kind::all_gather, rank_group::tensor), 2 * tokens);
  EXPECT_EQ(moved(forward, collective_kind::reduce_scatter, rank_group::tensor), 2 * tokens);
  // the gradients, and the inputs again
  EXPECT_EQ(moved(backward, collective_kind::all_gather, rank_group::tensor), 4 * tokens);
  EXPECT_EQ(moved(backward, collective_kind::reduce_scatter, rank_group::tensor), 2 * tokens);
  auto whole = llama2(2);
  whole.sequence_parallel = false;
  EXPECT_EQ(moved(forward_operations(whole), collective_kind::all_reduce, rank_group::tensor),
            2 * tokens);
}

TEST(layer, experts_exchange_the_tokens_that_are_active) {
  layer_setting s{
      .model = read_transformer("mixtral-8x7b"), .cut = {.data = 4, .expert = 4}, .tokens = 1000};
  const auto forward = forward_operations(s);
  EXPECT_EQ(moved(forward, collective_kind::all_to_all, rank_group::expert),
            2 * 2.0 * 1000 * 2 * 4096);
  // attention, router, and of two experts' MLPs 1000 tokens each
  EXPECT_EQ(product_operations(forward),
            2.0 * 1000 * (41943040 + 32768) + 2.0 * 2000 * 3 * 4096 * 14336);
  s.expert_skew = 1.5;
  EXPECT_EQ(moved(forward_operations(s), collective_kind::all_to_all, rank_group::expert),
            1.5 * 2 * 2.0 * 1000 * 2 * 4096);
}

TEST(layer, fp8_products_read_fp8_copies) {
  auto s = llama2();
  s.linear = product_type::fp8;
  double casts = 0;
  for (const auto& op : forward_operations(s)) {
    if (op.name == "inputs to fp8") casts += op.traffic;
  }
  EXPECT_EQ(casts, 4.0 * 4096 * (3 * 4096 + 11008));  // 2 in, 1 + 1 out
  for (const auto& op : loss_forward(s)) EXPECT_EQ(op.type, product_type::half);
}

TEST(layer, norms_of_an_eager_framework_move_more) {
  auto eager = llama2();
  eager.fused = false;
  EXPECT_EQ(forward_operations(llama2()).front().traffic, 8.0 * 4096 * 4096);
  EXPECT_EQ(forward_operations(eager).front().traffic, 36.0 * 4096 * 4096);
  EXPECT_EQ(forward_operations(eager).front().kernels, 8);
  EXPECT_EQ(forward_operations(eager).front().kind, elementwise_kind::norm);
  EXPECT_TRUE(forward_operations(eager).front().eager);
  eager.fused_norms = true;
  EXPECT_EQ(forward_operations(eager).front().traffic, 8.0 * 4096 * 4096);
  EXPECT_FALSE(forward_operations(eager).front().eager);
  EXPECT_TRUE(forward_operations(eager)[2].eager);  // its rotation
}

TEST(layer, keeps_what_backward_reads) {
  auto s = llama2();
  // a token: input, residual and two norms' outputs; Q, K, V; O and its statistics; two of the MLP and their product
  EXPECT_EQ(kept_bytes(s), 4096.0 * (4 * 8192 + 3 * 8192 + 8192 + 4 * 32 + 3 * 22016));
  s.recomputed = recomputation::selective;
  EXPECT_EQ(kept_bytes(s), 4096.0 * (2 * 8192 + 3 * 8192 + 4 * 32 + 22016));
  s.recomputed = recomputation::full;
  EXPECT_EQ(kept_bytes(s), 4096.0 * 8192);
  s.cut.tensor = 2;
  EXPECT_EQ(kept_bytes(s), 4096.0 * 4096);
}

/// A layer of DeepSeek-V3 whose MLP is dense.
layer_setting deepseek(int tensor = 1) {
  return without_experts(
      {.model = read_transformer("deepseek-v3"), .cut = {.tensor = tensor}, .tokens = 4096});
}

TEST(layer, of_latents_multiplies_every_parameter_once_and_backward_twice) {
  const auto s = deepseek();
  const double parameters = 7168.0 * (1536 + 576) + 1536.0 * 128 * 192 + 512.0 * 128 * 256 +
                            128.0 * 128 * 7168 + 3.0 * 7168 * 18432;
  EXPECT_EQ(product_operations(forward_operations(s)), 2 * 4096 * parameters);
  EXPECT_EQ(product_operations(backward_operations(s)), 2 * 2 * 4096 * parameters);
  auto full = s;
  full.recomputed = recomputation::full;
  EXPECT_EQ(product_operations(backward_operations(full)), 3 * 2 * 4096 * parameters);
  // Each tensor rank makes the latents of its own tokens.
  EXPECT_EQ(product_operations(forward_operations(deepseek(4))), 2 * 4096 * parameters / 4);
}

TEST(layer, of_latents_gathers_latents_before_the_heads) {
  const auto forward = forward_operations(deepseek(2)), backward = backward_operations(deepseek(2));
  constexpr double latents = 2.0 * 4096 * 2112, tokens = 2.0 * 4096 * 7168;
  EXPECT_EQ(moved(forward, collective_kind::all_gather, rank_group::tensor), latents + tokens);
  EXPECT_EQ(moved(forward, collective_kind::reduce_scatter, rank_group::tensor), 2 * tokens);
  EXPECT_EQ(moved(backward, collective_kind::all_gather, rank_group::tensor), latents + 3 * tokens);
  EXPECT_EQ(moved(backward, collective_kind::reduce_scatter, rank_group::tensor), latents + tokens);
}

TEST(layer, of_latents_keeps_them_and_what_they_become) {
  auto s = deepseek();
  // a token: input, residual and norms' outputs; latents and their norms; Q and K of 192, V and O of 128; two of the MLP and
  // their product
  const double mlp = 3.0 * 2 * 18432, heads = 2 * 128.0;
  EXPECT_EQ(kept_bytes(s), 4096 * (4 * 2 * 7168.0 + 2 * 2 * 2112 + heads * (192 + 192 + 128 + 128) +
                                   4 * 128 + mlp));
  s.recomputed = recomputation::selective;
  EXPECT_EQ(kept_bytes(s),
            4096 * (2 * 2 * 7168.0 + 2 * 2112 + heads * 128 + 4 * 128 + 2 * 18432.0));
}

TEST(layer, logits_are_held_in_four_forms_beside_what_they_are_made_of) {
  constexpr double input = 2.0 * 4096 * 4096, passed_on = input;
  EXPECT_EQ(loss_bytes(llama2()), 4096.0 * 32000 * (2 + 4 + 4 + 4) + input + passed_on);
  EXPECT_EQ(loss_bytes(llama2(2)), 4096.0 * 16000 * (2 + 4 + 4 + 4 + 4) + input + passed_on);
}

/// Input and output, two products and the activation's output, of which selective recomputation keeps one.
TEST(layer, blocks_of_the_forward_pass_stay_beside_the_loss) {
  constexpr double end = 2.0 * 4096 * 4096, product = 2.0 * 4096 * 11008;
  auto s = llama2();
  const double kept = loss_bytes(s) - end;
  s.recomputed = recomputation::full;
  EXPECT_EQ(loss_bytes(s), kept + 2 * end + 3 * product);
  s.recomputed = recomputation::selective;
  EXPECT_EQ(loss_bytes(s), kept + 2 * end + 2 * product);
  s = llama2(2);
  const double kept_of_two = loss_bytes(s) - end;
  s.overlaps_tensor = true;  // never whole
  EXPECT_EQ(loss_bytes(s), kept_of_two);
  s.recomputed = recomputation::full;
  EXPECT_EQ(loss_bytes(s), kept_of_two + 1.5 * product);
}

/// 8 layers' width of an MLP beside few logits: they fit into its blocks.
TEST(layer, small_logits_take_blocks_of_the_forward_pass) {
  auto s = llama2();
  s.recomputed = recomputation::full;
  s.model.intermediate *= 8;
  EXPECT_EQ(loss_bytes(s), 4096.0 * 32000 * (2 + 4 + 4 + 4) + 2.0 * 4096 * 4096);
}

TEST(layer, output_layer_multiplies_the_vocabulary) {
  EXPECT_EQ(product_operations(loss_forward(llama2())), 2.0 * 4096 * 4096 * 32000);
  EXPECT_EQ(product_operations(loss_backward(llama2())), 4.0 * 4096 * 4096 * 32000);
}

TEST(layer, parameters_a_rank) {
  EXPECT_EQ(dense_parameters_a_rank(llama2(2)), 202375168.0 / 2 + 8192);
  const layer_setting s{
      .model = read_transformer("mixtral-8x7b"), .cut = {.data = 8, .expert = 4}, .tokens = 1};
  EXPECT_EQ(dense_parameters_a_rank(s), 41943040.0 + 8192 + 32768);
  EXPECT_EQ(expert_parameters_a_rank(s), 2.0 * 3 * 4096 * 14336);
  // Latents are made on every tensor rank, norms too.
  EXPECT_EQ(
      dense_parameters_a_rank(deepseek(2)),
      7168.0 * 2112 + 2 * 7168 + 1536 + 512 +
          (1536.0 * 128 * 192 + 512.0 * 128 * 256 + 128.0 * 128 * 7168 + 3.0 * 7168 * 18432) / 2);
}

}  // namespace
}  // namespace attnsim
