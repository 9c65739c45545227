#include "model/step/memory.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace {

layer_setting llama2_over(int data) {
  return {.model = read_transformer("llama2-7b"), .cut = {.data = data}, .tokens = 1000};
}

constexpr held_layers whole_model{
    .layers = 32, .layers_in_flight = 32, .embedding = true, .loss = true};
constexpr double parameters = 6738415616 - 4096;  // the last norm is left out

TEST(step_memory, plain_states_are_eighteen_bytes_a_parameter) {
  const auto m = memory_of(llama2_over(8), sharding::none, whole_model);
  EXPECT_EQ(m.parameters, 2 * parameters);
  EXPECT_EQ(m.gradients, 4 * parameters);
  EXPECT_EQ(m.optimizer, 12 * parameters);
  EXPECT_EQ(m.buffers, 0);
}

TEST(step_memory, each_kind_of_sharding_divides_one_more) {
  const auto optimizer = memory_of(llama2_over(8), sharding::optimizer, whole_model);
  EXPECT_EQ(optimizer.optimizer, 12 * parameters / 8);
  EXPECT_EQ(optimizer.gradients, 4 * parameters);
  const auto gradients = memory_of(llama2_over(8), sharding::gradients, whole_model);
  EXPECT_EQ(gradients.gradients, 4 * parameters / 8);
  EXPECT_EQ(gradients.parameters, 2 * parameters);
  const auto all = memory_of(llama2_over(8), sharding::parameters, whole_model);
  EXPECT_EQ(all.parameters + all.optimizer + all.gradients, 16 * parameters / 8);
  // two gathered layers in bf16, one layer's gradients in fp32, both embeddings
  EXPECT_EQ(all.buffers, 202383360.0 * 8 + 2 * 2 * 131072000.0);
}

/// 4096 x 4096 x 4 + 3 x 4096 x 11008 + 2 x 4096 parameters a layer, gathered in bf16, their gradients in fp32.
TEST(step_memory, under_a_pipeline_fsdp_keeps_what_it_gathered) {
  auto s = llama2_over(8);
  s.cut.pipeline = 2;
  const held_layers half_of_them{.layers = 16, .layers_in_flight = 16};
  EXPECT_EQ(memory_of(s, sharding::parameters, half_of_them).buffers, 16 * 202383360.0 * 6);
}

TEST(step_memory, activations_are_those_under_way) {
  auto held = whole_model;
  held.layers = 8;
  held.layers_in_flight = 32;
  const auto s = llama2_over(1);
  EXPECT_EQ(memory_of(s, sharding::none, held).activations, 32 * kept_bytes(s));
}

TEST(step_memory, workspace_is_the_larger_of_loss_and_layer) {
  const auto s = llama2_over(1);
  EXPECT_EQ(memory_of(s, sharding::none, whole_model).workspace, loss_bytes(s));
  auto middle = whole_model;
  middle.loss = false;
  EXPECT_EQ(memory_of(s, sharding::none, middle).workspace, working_bytes(s));
}

TEST(step_memory, attention_s_blocks_are_free_while_the_loss_is_computed) {
  const auto s = llama2_over(1);
  auto held = whole_model;
  held.attention_buffers = loss_bytes(s) - working_bytes(s) - 1;
  EXPECT_EQ(memory_of(s, sharding::none, held).buffers, 0);
  held.attention_buffers += 1;
  const auto m = memory_of(s, sharding::none, held);
  EXPECT_EQ(m.buffers, held.attention_buffers);
  EXPECT_EQ(m.workspace, working_bytes(s));
}

TEST(step_memory, experts_have_fewer_replicas) {
  const layer_setting s{
      .model = read_transformer("mixtral-8x7b"), .cut = {.data = 8, .expert = 4}, .tokens = 1};
  const held_layers held{.layers = 1, .layers_in_flight = 1};
  EXPECT_EQ(memory_of(s, sharding::optimizer, held).optimizer,
            12 * dense_parameters_a_rank(s) / 8 + 12 * expert_parameters_a_rank(s) / 2);
}

TEST(step_memory, dense_layers_have_no_experts) {
  const layer_setting s{
      .model = read_transformer("deepseek-v3"), .cut = {.data = 8, .expert = 4}, .tokens = 1};
  const held_layers held{.layers = 4, .dense = 3, .layers_in_flight = 4};
  EXPECT_EQ(parameters_of(s, held),
            dense_parameters_a_rank(s) + 3 * dense_parameters_a_rank(without_experts(s)));
  EXPECT_EQ(expert_parameters_of(s, held), 64.0 * 3 * 7168 * 2048);
  EXPECT_EQ(memory_of(s, sharding::none, held).activations,
            kept_bytes(s) + 3 * kept_bytes(without_experts(s)));
}

TEST(step_memory, a_prefill_keeps_no_states) {
  const auto m = memory_of_prefill(llama2_over(1), whole_model, 100);
  EXPECT_EQ(m.parameters, 2 * parameters);
  EXPECT_EQ(m.activations, 3200);
  EXPECT_EQ(m.gradients + m.optimizer, 0);
}

}  // namespace
}  // namespace attnsim
