#include "validate/layer/validate_layer.hpp"

#include <gmock/gmock.h>

#include "model/error.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/validate/small_layers.hpp"

namespace attnsim::validate {
namespace validate_layer_test {

using testing::ElementsAre;

class validated_layer : public testing::Test {
 protected:
  layer_request request(std::initializer_list<std::pair<const char*, const char*>> fields) {
    layer_request r{.on = on_, .kernel = "cpu", .repeats = {.runs = 3}};
    r.question.model = folder_.write(
        "config.json",
        R"({"model_type": "llama", "hidden_size": 24, "intermediate_size": 20, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 1, "vocab_size": 100})");
    set(r.question, "seq", "16");
    set(r.question, "ranks", "2");
    for (const auto& [name, text] : fields) set(r.question, name, text);
    return r;
  }

  cluster on_ = small_cluster();
  temporary_folder folder_;
};

std::vector<std::string> names(const std::vector<part_time>& parts) {
  std::vector<std::string> list;
  for (const auto& p : parts) list.push_back(p.name);
  return list;
}

TEST_F(validated_layer, has_measured_beside_predicted_by_kind) {
  const auto v = validate_layer(request({{"tp", "2"}}));
  EXPECT_TRUE(v.passed());
  ASSERT_EQ(v.passes.size(), 2u);
  for (const auto& p : v.passes) {
    EXPECT_THAT(names(p.parts),
                ElementsAre("matmul", "attention", "elementwise", "tensor_exchange"));
    seconds predicted, measured;
    for (const auto& part : p.parts) {
      predicted += part.predicted;
      measured += part.measured;
    }
    EXPECT_NEAR(predicted.value(), p.total.predicted.value(), 1e-12);
    EXPECT_LE(measured.value(), p.total.measured.value() + 1e-9);  // a rank may start late
    EXPECT_EQ(p.durations.size(), 3u);
  }
  EXPECT_EQ(
      names(v.passes[0].operations),
      (std::vector<std::string>{"norm", "gather of tokens", "projections", "rotation", "values",
                                "attention", "output", "sum of parts", "norm", "gather of tokens",
                                "MLP up", "activation", "MLP down", "sum of parts"}));
  EXPECT_EQ(names(v.passes[1].operations).back(), "sum of norms' gradients");
}

TEST_F(validated_layer, counts_what_sharded_parameters_exchange) {
  const auto v = validate_layer(request({{"dp", "2"}, {"shard", "parameters"}}));
  EXPECT_TRUE(v.passed());
  EXPECT_THAT(names(v.passes[0].parts),
              ElementsAre("matmul", "attention", "elementwise", "data_exchange"));
  EXPECT_EQ(names(v.passes[0].operations).front(), "gather of parameters");
  EXPECT_EQ(names(v.passes[1].operations).back(), "sum of gradients");
}

TEST_F(validated_layer, takes_times_alone) {
  auto r = request({{"cp", "2"}});
  r.checks = false;
  const auto v = validate_layer(r);
  EXPECT_FALSE(v.computed);
  EXPECT_TRUE(v.passed());
}

TEST_F(validated_layer, refuses_a_prefill) {
  try {
    validate_layer(request({{"tp", "2"}, {"task", "prefill"}}));
    FAIL();
  } catch (const input_error& e) {
    EXPECT_STREQ(e.what(), "task: 'prefill': expected train: both passes are run");
  }
}

}  // namespace validate_layer_test
}  // namespace attnsim::validate
