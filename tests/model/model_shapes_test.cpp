#include "model/attention/model_shapes.hpp"

#include <gmock/gmock.h>

#include "model/config.hpp"
#include "model/topology_files.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim {
namespace model_shapes_test {

using testing::ElementsAre;
using testing::IsEmpty;

attention layer_of(const std::string& model, layer_kind layer = layer_kind::full) {
  attention a{.sequence = 4096};
  use_model(a, model, layer);
  return a;
}

TEST(listed_models, have_heads_that_fit) {
  for (const auto& [name, entry] : config_node::load(find_topology_file("", "models")).entries()) {
    const auto a = layer_of(name);
    EXPECT_NO_THROW(check(a)) << name;
    EXPECT_EQ(a.window > 0, name == "mistral-7b-v0.1") << name;
  }
}

TEST(listed_models, full_and_window_layers) {
  EXPECT_THAT(layer_of("llama3-8b").notes, IsEmpty());
  const auto full = layer_of("gpt-oss-120b"), window = layer_of("gpt-oss-120b", layer_kind::window);
  EXPECT_EQ(full.heads, 64);
  EXPECT_EQ(full.kv_heads, 8);
  EXPECT_EQ(full.head_dim, 64);
  EXPECT_EQ(full.window, 0);
  EXPECT_EQ(window.window, 128);
  EXPECT_TRUE(full.sinks);
  EXPECT_FALSE(layer_of("llama3-8b").sinks);
  EXPECT_THAT(full.notes, ElementsAre("18 of the 36 layers of gpt-oss-120b have a window of 128 "
                                      "tokens: this is one of the others"));
  EXPECT_EQ(window.notes[0],
            "18 of the 36 layers of gpt-oss-120b have a window of 128 tokens: this is one of them");
  EXPECT_EQ(layer_of("mistral-7b-v0.1", layer_kind::window).window, 4096);
}

TEST(listed_models, diffusion_models_have_a_full_mask) {
  EXPECT_EQ(layer_of("wan2.2-t2v-a14b").mask, mask_kind::full);
  EXPECT_THAT(layer_of("hunyuanvideo").notes,
              ElementsAre("the sequence holds text and image tokens together"));
}

TEST(listed_models, keys_and_values_of_two_head_dimensions) {
  const auto a = layer_of("deepseek-v3");
  EXPECT_EQ(a.kv_heads, 128);
  EXPECT_EQ(a.head_dim, 192);
  EXPECT_EQ(a.v_head_dim, 128);
  EXPECT_TRUE(a.notes.empty());
  EXPECT_EQ(layer_of("llama3-8b").v_head_dim, 0);
}

TEST(listed_models, layers_that_are_not_there) {
  EXPECT_ERROR(layer_of("llama3-8b", layer_kind::window), input_error,
               "layer: 'window': expected full: no layer of llama3-8b has a window");
  EXPECT_ERROR(layer_of("llama4-scout", layer_kind::window), input_error,
               "layer: 'window': llama4-scout has chunks of 8192 tokens that see their own only: "
               "expected documents of that length");
}

TEST(configurations, of_the_text_in_a_file) {
  const temporary_folder folder;
  const auto file = folder.write("config.json", R"({
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
    "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
    "num_hidden_layers": 28, "max_window_layers": 28,
    "sliding_window": 131072, "use_sliding_window": false, "rope_scaling": null})");
  const auto a = layer_of(file);
  EXPECT_EQ(a.heads, 28);
  EXPECT_EQ(a.kv_heads, 4);
  EXPECT_EQ(a.head_dim, 128);
  EXPECT_EQ(a.window, 0);
  EXPECT_EQ(a.mask, mask_kind::causal);
  EXPECT_THAT(a.notes, IsEmpty());
}

TEST(configurations, pasted_and_indented_with_tabs) {
  const auto a =
      layer_of("{\n\t\"n_head\": 12,\n\t\"n_embd\": 768,\n\t\"model_type\": \"gpt2\"\n}");
  EXPECT_EQ(a.heads, 12);
  EXPECT_EQ(a.kv_heads, 12);
  EXPECT_EQ(a.head_dim, 64);
}

TEST(configurations, the_text_part_of_a_model_of_several) {
  const std::string gemma =
      R"({"model_type": "gemma3", "vision_config": {"num_attention_heads": 16},
    "text_config": {"hidden_size": 5376, "num_attention_heads": 32, "num_key_value_heads": 16,
      "head_dim": 128, "num_hidden_layers": 62, "sliding_window": 1024, "sliding_window_pattern": 6}})";
  const auto a = layer_of(gemma);
  EXPECT_EQ(a.heads, 32);
  EXPECT_EQ(a.head_dim, 128);
  EXPECT_EQ(a.window, 0);
  EXPECT_THAT(a.notes, ElementsAre("52 of the 62 layers of gemma3 have a window of 1024 tokens: "
                                   "this is one of the others"));
  EXPECT_EQ(layer_of(gemma, layer_kind::window).window, 1024);
}

TEST(configurations, layers_by_their_list) {
  const auto listed = [](const std::string& types) {
    return R"({"model_type": "m", "num_attention_heads": 8, "head_dim": 64, "sliding_window": 128,
      "layer_types": [)" +
           types + "]}";
  };
  EXPECT_EQ(layer_of(listed("sliding_attention, full_attention")).window, 0);
  EXPECT_EQ(layer_of(listed("sliding_attention, sliding_attention")).window, 128);
  EXPECT_EQ(layer_of(listed("full_attention")).window, 0);
  EXPECT_THAT(layer_of(listed("linear_attention, linear_attention, full_attention")).notes,
              ElementsAre("2 of the 3 layers of m have no softmax attention: this is one of the "
                          "others"));
  EXPECT_ERROR(layer_of(listed("full_attention"), layer_kind::window), input_error,
               "layer: 'window': expected full: no layer of m has a window");
  EXPECT_ERROR(layer_of(listed("linear_attention")), input_error,
               "config.json:2: layer_types: '[...]': expected a layer of full_attention or "
               "sliding_attention");
}

TEST(configurations, chunks) {
  const auto a = layer_of(R"({"model_type": "llama4", "text_config": {"num_attention_heads": 40,
    "num_key_value_heads": 8, "head_dim": 128, "attention_chunk_size": 8192, "num_hidden_layers": 48}})");
  EXPECT_THAT(a.notes, ElementsAre("36 of the 48 layers of llama4 see chunks of 8192 tokens: this "
                                   "is one of the others"));
}

TEST(configurations, latent_attention_has_a_key_head_a_query_head) {
  const auto a = layer_of(R"({"model_type": "deepseek_v3", "hidden_size": 7168,
    "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})");
  EXPECT_EQ(a.kv_heads, 128);
  EXPECT_EQ(a.head_dim, 192);
  EXPECT_EQ(a.v_head_dim, 128);
  EXPECT_EQ(a.notes, layer_of("deepseek-v3").notes);
}

TEST(configurations, absorbed_latent_attention_has_one_key_head_with_its_values) {
  for (const auto* model :
       {"deepseek-v3", R"({"model_type": "deepseek_v3", "num_attention_heads": 128,
         "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"}) {
    attention a;
    use_absorbed(a, model);
    EXPECT_EQ(a.heads, 128);
    EXPECT_EQ(a.kv_heads, 1);
    EXPECT_EQ(a.head_dim, 576);
    EXPECT_EQ(a.v_head_dim, 512);
  }
  attention a;
  EXPECT_ERROR(use_absorbed(a, "llama3-8b"), input_error,
               "latent: llama3-8b has no latent attention");
}

TEST(layers, of_a_model_that_has_two_kinds) {
  EXPECT_EQ(layers_of("gemma3-27b").full, 10);
  EXPECT_EQ(layers_of("gemma3-27b").window, 52);
  for (const auto* model : {"llama3-8b", "llama4-scout", "mistral-7b-v0.1"})
    EXPECT_EQ(layers_of(model).full + layers_of(model).window, 0) << model;
}

TEST(configurations, of_diffusers) {
  const auto a = layer_of(R"({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 128,
    "joint_attention_dim": 4096, "num_attention_heads": 24})");
  EXPECT_EQ(a.heads, 24);
  EXPECT_EQ(a.head_dim, 128);
  EXPECT_EQ(a.mask, mask_kind::full);
  EXPECT_EQ(a.notes, layer_of("flux.1-dev").notes);
  const auto wan = layer_of(R"({"_class_name": "WanModel", "dim": 5120, "num_heads": 40})");
  EXPECT_EQ(wan.head_dim, 128);
  EXPECT_THAT(wan.notes, IsEmpty());
}

TEST(configurations, errors_name_line_and_key) {
  EXPECT_ERROR(layer_of("{\"model_type\": \"clip\"}"), input_error,
               "config.json:1: num_attention_heads: missing");
  EXPECT_ERROR(layer_of("{\"num_attention_heads\": 0}"), input_error,
               "config.json:1: num_attention_heads: '0': expected a whole number of at least 1");
  EXPECT_ERROR(
      layer_of("{\"num_attention_heads\": 7,\n\"hidden_size\": 100}"), input_error,
      "config.json:2: hidden_size: '100': expected head_dim, or a multiple of the 7 heads");
  EXPECT_ERROR(layer_of("{\"num_attention_heads\": 99999999999999}"), input_error,
               "config.json:1: num_attention_heads: '99999999999999': expected at most "
               "1099511627776");
  const temporary_folder folder;
  EXPECT_ERROR(layer_of(folder.write("list.json", "[1, 2]")), input_error,
               folder.file("list.json") + ":1: expected a map of keys to values");
}

TEST(layers, names) {
  EXPECT_EQ(parse_layer("window"), layer_kind::window);
  EXPECT_EQ(name_of(layer_kind::full), "full");
  EXPECT_THROW(parse_layer("half"), std::invalid_argument);
}

}  // namespace model_shapes_test
}  // namespace attnsim
