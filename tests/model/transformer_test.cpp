#include "model/layer/transformer.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace {

TEST(transformer, has_the_parameters_that_are_published) {
  EXPECT_EQ(read_transformer("llama2-7b").parameters(), 6738415616);
  EXPECT_EQ(read_transformer("llama3-8b").parameters(), 8030261248);
  EXPECT_EQ(read_transformer("llama3-405b").parameters(), 405853388800);
  EXPECT_EQ(read_transformer("llama3.2-1b").parameters(), 1235814400);  // tied
  EXPECT_EQ(read_transformer("mixtral-8x7b").parameters(), 46702792704);
  EXPECT_EQ(read_transformer("mixtral-8x7b").active_parameters(), 12879925248);
}

TEST(transformer, of_a_configuration) {
  const auto t = read_transformer(
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 200,
          "moe_intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 16, "num_experts": 8, "num_experts_per_tok": 2,
          "vocab_size": 1000, "tie_word_embeddings": true})");
  EXPECT_EQ(t.layers, 3);
  EXPECT_TRUE(t.gated);
  // 64 x (4 + 2 + 2 + 4) x 16 + two norms + router + 8 experts of 3 x 64 x 32
  const double layer = 12288 + 128 + 512 + 8 * 6144;
  EXPECT_EQ(t.layer_parameters(), layer);
  EXPECT_EQ(t.parameters(), 3 * layer + 64000 + 64);
  EXPECT_EQ(t.active_parameters(), 3 * (layer - 6 * 6144) + 64000 + 64);
}

// arXiv 2405.04434 (V2: 236B, 21B active; V2-Lite: 15.7B, 2.4B), 2412.19437 (V3: 671B, 37B), 2507.20534 (K2: 1.04T, 32.6B).
TEST(transformer, with_latent_attention_has_the_parameters_that_are_published) {
  const auto billions = [](double parameters) { return parameters / 1e9; };
  const auto v2 = read_transformer("deepseek-v2"), lite = read_transformer("deepseek-v2-lite"),
             v3 = read_transformer("deepseek-v3"), k2 = read_transformer("kimi-k2");
  EXPECT_NEAR(billions(v2.parameters()), 236, 0.5);
  EXPECT_NEAR(billions(v2.active_parameters()), 21, 0.5);
  EXPECT_NEAR(billions(lite.parameters()), 15.7, 0.05);
  EXPECT_NEAR(billions(v3.parameters()), 671, 0.5);
  EXPECT_NEAR(billions(v3.active_parameters()), 37, 0.8);
  EXPECT_NEAR(billions(k2.parameters()), 1040, 15);
  EXPECT_NEAR(billions(k2.active_parameters()), 32.6, 0.5);
}

TEST(transformer, of_a_configuration_with_latents) {
  const auto t = read_transformer(
      R"({"model_type": "deepseek_v3", "hidden_size": 64, "num_attention_heads": 4,
          "q_lora_rank": 24, "kv_lora_rank": 8, "qk_nope_head_dim": 16, "qk_rope_head_dim": 4,
          "v_head_dim": 12, "num_hidden_layers": 3, "intermediate_size": 100, "vocab_size": 50})");
  EXPECT_EQ(t.latent_width(), 24 + 8 + 4);
  EXPECT_EQ(t.expanded_width(), 4 * (16 + 12));
  EXPECT_EQ(t.cached_width(), 8 + 4);
  EXPECT_EQ(t.attention_parameters(), 64 * 36 + 24 * 4 * 20 + 8 * 4 * 28 + 4 * 12 * 64);
  EXPECT_EQ(t.norm_parameters(), 2 * 64 + 24 + 8);
  const auto direct = read_transformer(
      R"({"model_type": "deepseek_v2", "hidden_size": 64, "num_attention_heads": 4,
          "q_lora_rank": null, "kv_lora_rank": 8, "qk_nope_head_dim": 16, "qk_rope_head_dim": 4,
          "v_head_dim": 12, "num_hidden_layers": 3, "intermediate_size": 100, "vocab_size": 50})");
  EXPECT_EQ(direct.attention_parameters(), 64 * 12 + 64 * 4 * 20 + 8 * 4 * 28 + 4 * 12 * 64);
}

TEST(transformer, of_gpt2_is_dense_and_four_times_as_wide) {
  const auto t = read_transformer(
      R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100})");
  EXPECT_FALSE(t.gated);
  EXPECT_TRUE(t.tied);
  EXPECT_EQ(t.intermediate, 256);
}

TEST(transformer, windows_are_of_some_layers) {
  const auto t = read_transformer("gpt-oss-20b");
  EXPECT_EQ(t.layers, 24);
  EXPECT_EQ(t.limited_layers, 12);
  EXPECT_EQ(t.shape.window, 0);
  EXPECT_EQ(t.limited.window, 128);
}

TEST(transformer, model_operations_are_six_a_parameter_and_twelve_a_visible_pair) {
  // 6 x (32 layers' matrices + the output layer) + 12 x 4096 x (4096 + 1) / 2 x 32 layers
  EXPECT_EQ(model_operations_a_token(read_transformer("llama2-7b"), 4096),
            6.0 * (32 * 202375168.0 + 131072000.0) + 12 * 2048.5 * 4096 * 32);
}

TEST(transformer, cached_tokens_are_seen_by_every_new_one) {
  const auto t = read_transformer("llama2-7b");
  EXPECT_EQ(model_operations_a_token(t, 4096, 1000) - model_operations_a_token(t, 4096),
            12.0 * 1000 * 4096 * 32);
}

TEST(transformer, says_what_it_cannot_read) {
  EXPECT_ERROR(read_transformer("flux.1-dev"), input_error,
               "model: 'flux.1-dev': the list has its attention only: expected a config.json, or a "
               "model whose row of topologies/models.yaml has hidden, intermediate, depth, "
               "vocabulary");
}

}  // namespace
}  // namespace attnsim
