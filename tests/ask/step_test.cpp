#include "ask/step.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

using texts = std::initializer_list<std::pair<const char*, const char*>>;

step_question asked_with(const texts& fields) {
  step_question q;
  q.base.cluster = "dgx-h100";
  set(q, "model", "llama2-7b");
  set(q, "seq", "4096");
  set(q, "nodes", "1");
  for (const auto& [name, text] : fields) set(q, name, text);
  return q;
}

step_answer answered(const texts& fields) {
  const auto q = asked_with(fields);
  return answer(q, cluster_of(q.base));
}

TEST(step, parts_add_up_to_the_time) {
  for (const texts& fields : {texts{{"tp", "8"}}, texts{{"shard", "parameters"}},
                              texts{{"pp", "4"}, {"global-batch", "16"}},
                              texts{{"cp", "2"}, {"tp", "2"}, {"shard", "optimizer"}}}) {
    const auto a = answered(fields);
    EXPECT_DOUBLE_EQ(sum_of(a.parts), a.time.value());
    EXPECT_LT(a.low, a.time);
    EXPECT_GT(a.high, a.time);
  }
}

TEST(step, rates_are_of_the_step_s_tokens) {
  const auto a = answered({{"global-batch", "32"}, {"shard", "optimizer"}});
  EXPECT_EQ(a.micro_batches, 4);
  EXPECT_DOUBLE_EQ(a.tokens_a_second, 32 * 4096 / a.time.value() / 8);
  EXPECT_DOUBLE_EQ(
      a.model_rate.value(),
      model_operations_a_token(read_transformer("llama2-7b"), 4096) * a.tokens_a_second);
  EXPECT_DOUBLE_EQ(a.utilisation, a.model_rate.value() / 989.4e12);
}

TEST(step, attention_is_the_schedule_s_own_prediction) {
  const auto a = answered({{"cp", "4"}, {"tp", "2"}, {"seq", "64K"}});
  question q;
  q.cluster = "dgx-h100";
  for (const auto& [name, text] :
       texts{{"nodes", "1"}, {"seq", "64K"}, {"heads", "32"}, {"tp", "2"}})
    set(q, name, text);
  EXPECT_EQ(a.attention.time, predict(q, cluster_of(q)).time);
  EXPECT_NEAR(a.part(step_part::attention), 32 * a.attention.time.value(), 1e-9);
}

TEST(step, recomputation_trades_time_for_memory) {
  const auto none = answered({{"ranks", "1"}}),
             some = answered({{"ranks", "1"}, {"recompute", "selective"}}),
             full = answered({{"ranks", "1"}, {"recompute", "full"}});
  EXPECT_GT(none.memory.activations, some.memory.activations);
  EXPECT_GT(some.memory.activations, full.memory.activations);
  EXPECT_LT(none.time, some.time);
  EXPECT_LT(some.time, full.time);
  // attention's forward pass once more
  EXPECT_NEAR(full.part(step_part::attention) - none.part(step_part::attention),
              32 * none.attention.passes[0].time.value(), 1e-9);
}

TEST(step, a_pipeline_waits) {
  const auto flat = answered({{"ranks", "4"}, {"global-batch", "8"}, {"pp", "4"}}),
             interleaved =
                 answered({{"ranks", "4"}, {"global-batch", "8"}, {"pp", "4"}, {"vp", "2"}});
  EXPECT_GT(flat.part(step_part::bubble), 0);
  EXPECT_LT(interleaved.part(step_part::bubble), flat.part(step_part::bubble));
  EXPECT_EQ(flat.peak_by_rank.size(), 4u);
}

TEST(step, faster_attention_gives_what_amdahl_s_law_says) {
  const auto a = answered({{"ranks", "1"}});
  const double share = a.part(step_part::attention) / a.time.value();
  EXPECT_NEAR(a.speedup_of_attention[0], 1 / (1 - share / 2), 1e-9);
  EXPECT_NEAR(a.speedup_of_attention[2], 1 / (1 - share), 1e-9);
}

TEST(step, a_gradient_is_reduced_once_and_mostly_hidden) {
  const auto one = answered({{"ranks", "1"}}), eight = answered({});
  EXPECT_GT(eight.part(step_part::data), 0);
  EXPECT_LT(eight.part(step_part::data), 0.1 * eight.time.value());
  EXPECT_EQ(one.part(step_part::data), 0);
}

TEST(step, of_experts_exchanges_tokens) {
  const auto a = answered({{"model", "mixtral-8x7b"}, {"ep", "8"}, {"shard", "optimizer"}});
  EXPECT_GT(a.part(step_part::expert), 0);
  const auto skewed = answered(
      {{"model", "mixtral-8x7b"}, {"ep", "8"}, {"shard", "optimizer"}, {"expert-skew", "2"}});
  EXPECT_GT(skewed.part(step_part::expert), 1.8 * a.part(step_part::expert));
}

TEST(step, a_prefill_is_one_forward_pass) {
  const auto a = answered({{"tp", "8"}, {"task", "prefill"}});
  EXPECT_NEAR(a.part(step_part::attention), 32 * a.attention.passes[0].time.value(), 1e-9);
  EXPECT_EQ(a.memory.gradients, 0);
  // keys and values of 32 layers: 2 x 2 bytes x 4096 tokens x 4096 / 8
  EXPECT_EQ(a.memory.activations, 32 * 4.0 * 4096 * 512);
  const auto later = answered({{"tp", "8"}, {"task", "prefill"}, {"prefix", "32K"}});
  EXPECT_GT(later.part(step_part::attention), 8 * a.part(step_part::attention));
  EXPECT_NEAR(later.part(step_part::products), a.part(step_part::products), 1e-9);
}

TEST(step, says_when_memory_does_not_suffice) {
  const auto a = answered({{"ranks", "1"}});
  EXPECT_FALSE(a.feasible);
  EXPECT_THAT(a.warnings,
              testing::Contains(testing::HasSubstr(
                  "of the device's 80.00 GiB on pipeline rank 0, most of it optimizer")));
}

TEST(step, leaves_what_is_reserved) {
  const auto whole = answered({{"tp", "8"}});
  EXPECT_TRUE(whole.feasible);
  const auto free = 80.0 - whole.memory.total() / (1 << 30);
  EXPECT_TRUE(
      answered({{"tp", "8"}, {"reserve", fmt::format("{} GiB", free - 1).c_str()}}).feasible);
  EXPECT_FALSE(
      answered({{"tp", "8"}, {"reserve", fmt::format("{} GiB", free + 1).c_str()}}).feasible);
  EXPECT_ERROR(answered({{"tp", "8"}, {"reserve", "80 GiB"}}), infeasible,
               "reserve: '80.00 GiB': h100-sxm5 has 80.00 GiB; feasible: less");
}

TEST(step, sixteen_thousand_devices_take_no_longer_than_a_few) {
  const auto a = answered({{"model", "llama3-405b"},
                           {"nodes", "2048"},
                           {"seq", "8K"},
                           {"tp", "8"},
                           {"pp", "16"},
                           {"global-batch", "2048"},
                           {"shard", "optimizer"},
                           {"recompute", "full"}});
  EXPECT_EQ(a.cut.data, 128);
  EXPECT_TRUE(a.feasible);
  EXPECT_GT(a.utilisation, 0.15);
  EXPECT_LT(a.utilisation, 0.6);
}

TEST(step, errors_are_about_its_own_fields) {
  EXPECT_ERROR(answered({{"cp", "8"}, {"schedule", "helix"}}), input_error,
               "task: 'train': expected prefill: helix decodes");
  EXPECT_ERROR(answered({{"prefix", "4096"}}), input_error,
               "task: 'train': expected prefill: the tokens of a cached prefix have no gradients");
  EXPECT_ERROR(
      answered({{"micro-batch", "1000000000"}}), input_error,
      "micro-batch: '1000000000': expected at most 536870912 here: bytes and pairs of tokens "
      "are counted in 64 bits");
  try {
    answered({{"micro-batch", "1000000000"}});
  } catch (const input_error& e) {
    EXPECT_EQ(e.field(), "micro-batch");  // views word it
  }
}

TEST(step, degrees_must_fit) {
  EXPECT_ERROR(answered({{"tp", "3"}}), infeasible,
               "tp: '3': tp x cp x pp x dp is 3 x 1 x 1 x 2, of 8 ranks; feasible: degrees whose "
               "product is the ranks, or another number of ranks");
  EXPECT_ERROR(answered({{"global-batch", "12"}}), infeasible,
               "global-batch: '12': expected a multiple of micro-batch x dp, 1 x 8; feasible: 16");
  EXPECT_ERROR(answered({{"ep", "2"}}), input_error,
               "ep: '2': expected 1: llama2-7b has no experts");
  EXPECT_ERROR(answered({{"vp", "2"}}), input_error, "vp: '2': expected with pp of at least 2");
  EXPECT_ERROR(answered({{"pp", "8"}, {"vp", "8"}, {"global-batch", "8"}}), infeasible,
               "vp: '8': llama2-7b has 32 layers; feasible: pp x vp up to 32");
  EXPECT_ERROR(answered({{"model", "mixtral-8x7b"}, {"ranks", "6"}, {"ep", "4"}}), infeasible,
               "ep: '4': mixtral-8x7b has 8 experts, a stage 6 ranks; feasible: divisors of both, "
               "such as 2");
}

step_question one_of_llama3() {
  step_question q;
  q.model = "llama3-8b";
  set(q, "ranks", "1");
  set(q, "seq", "8192");
  return q;
}

TEST(layer_of, shares_a_clock_under_the_power_limit) {
  auto c = read_cluster("dgx-h200", {.nodes = 1});
  const auto t = read_transformer("llama3-8b");
  const auto layer = [&](const char* kernel) {
    auto q = one_of_llama3();
    set(q, "kernel", kernel);
    known_parts known(c);
    const auto a = layer_of(q, c, t, known);
    return a.forward + a.backward;
  };
  const auto products = static_cast<std::size_t>(step_part::products),
             attention = static_cast<std::size_t>(step_part::attention);
  const auto fa2 = layer("fa2-torch"), cudnn = layer("cudnn-9.19"), fa3 = layer("fa3");
  c.device.power = {};
  c.device.matmul.boost = 1;
  const auto highest = layer("cudnn-9.19");
  EXPECT_EQ(fa3[products], highest[products]);  // nobody measured its power
  EXPECT_LT(cudnn[products], 0.99 * highest[products]);
  EXPECT_LT(fa2[products], 0.98 * cudnn[products]);  // takes less power
  EXPECT_GT(cudnn[attention], 1.1 * highest[attention]);
}

TEST(step, bound_is_below_what_products_take_at_the_highest_clock) {
  const auto c = read_cluster("dgx-h200", {.nodes = 1});
  auto q = one_of_llama3();
  set(q, "kernel", "fa2-torch");
  set(q, "seq", "65536");  // attention takes most, and less power
  const auto t = read_transformer(q.model);
  EXPECT_LT(bound_of(q, c, t).time, answer(q, c).time.value());
}

/// A quarter faster for a second, which is longer than the layer: its attention, measured with pauses, has that in its table.
TEST(layer_of, by_itself_runs_above_the_clocks_that_steps_settle_at) {
  auto c = read_cluster("dgx-h200", {.nodes = 1});
  c.device.power = {};
  auto q = one_of_llama3();
  set(q, "kernel", "attnsim-cuda");
  const auto t = read_transformer(q.model);
  const auto by = [&](double boost, layer_runner runner) {
    c.device.matmul.boost = boost;
    c.device.matmul.boost_time = seconds(1);
    known_parts known(c);
    return layer_of(q, c, t, known, runner).forward;
  };
  const auto steady = by(1, layer_runner::framework), settled = by(1.25, layer_runner::framework),
             alone = by(1.25, layer_runner::executor);
  const auto products = static_cast<std::size_t>(step_part::products),
             attention = static_cast<std::size_t>(step_part::attention);
  EXPECT_DOUBLE_EQ(settled[products], steady[products]);
  EXPECT_DOUBLE_EQ(settled[attention], 1.25 * steady[attention]);
  EXPECT_NEAR(alone[products], steady[products] / 1.25, 1e-12);
  EXPECT_NEAR(alone[attention], steady[attention], 1e-12);
}

}  // namespace
}  // namespace attnsim::ask
