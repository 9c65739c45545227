#include "ask/step_run.hpp"

#include <gmock/gmock.h>

namespace attnsim::ask {
namespace {

using testing::ElementsAre;

/// Llama 2 7B with attention of 1 and 2 ms a layer on a host of eight.
class step_run_of {
 public:
  explicit step_run_of(const degrees& cut, step_task task = step_task::train,
                       sharding sharded = sharding::none, int micro_batches = 1)
      : setting_{.model = read_transformer("llama2-7b"), .cut = cut, .tokens = 4096},
        known_(host_),
        costs_(host_, setting_, sharded, {.time = {1e-3, 2e-3}}, known_),
        run_(costs_, setting_, task, sharded, micro_batches, 1) {}

  const step_run* operator->() const { return &run_; }
  double part(step_part p) const { return run_.parts()[static_cast<std::size_t>(p)]; }

 private:
  cluster host_ = read_cluster("dgx-h100", {.nodes = 1});
  layer_setting setting_;
  known_parts known_;
  step_costs costs_;
  step_run run_;
};

TEST(stage_layers, are_as_even_as_they_go) {
  const auto counts = [](const degrees& cut, int layers) {
    std::vector<int> all;
    for (const auto& row : stage_layers(cut, {.layers = layers})) all.push_back(row.count());
    return all;
  };
  EXPECT_THAT(counts({.pipeline = 4}, 32), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(counts({.pipeline = 4}, 30), ElementsAre(8, 8, 7, 7));
  EXPECT_THAT(counts({.pipeline = 2, .chunks = 2}, 6), ElementsAre(2, 2, 1, 1));
}

TEST(stage_layers, dense_ones_come_first) {
  const transformer t{.layers = 8, .experts = 16, .dense_layers = 3};
  EXPECT_THAT(stage_layers({.pipeline = 4}, t),
              ElementsAre(layer_row{2, 0}, layer_row{1, 1}, layer_row{0, 2}, layer_row{0, 2}));
}

TEST(step_run, holds_what_is_under_way) {
  const step_run_of four({.pipeline = 4}, step_task::train, sharding::none, 8);
  EXPECT_EQ(four->held(0).layers, 8);
  EXPECT_EQ(four->held(0).layers_in_flight, 32);
  EXPECT_EQ(four->held(3).layers_in_flight, 8);
  EXPECT_TRUE(four->held(0).embedding);
  EXPECT_FALSE(four->held(0).loss);
  EXPECT_TRUE(four->held(3).loss);
}

TEST(step_run, every_micro_batch_attends_in_every_layer) {
  EXPECT_NEAR(step_run_of({}).part(step_part::attention), 32 * 3e-3, 1e-9);
  EXPECT_NEAR(step_run_of({}, step_task::train, sharding::none, 5).part(step_part::attention),
              5 * 32 * 3e-3, 1e-9);
  EXPECT_NEAR(step_run_of({}, step_task::prefill).part(step_part::attention), 32e-3, 1e-9);
}

TEST(step_run, scales_attention_alone) {
  const step_run_of run({});
  const auto full = run->parts(), half = run->parts(0.5);
  EXPECT_NEAR(sum_of(full) - sum_of(half), 32 * 1.5e-3, 1e-9);
}

TEST(step_run, a_pipeline_s_bubble_is_what_its_busiest_rank_waits) {
  EXPECT_EQ(step_run_of({}).part(step_part::bubble), 0);
  EXPECT_GT(
      step_run_of({.pipeline = 4}, step_task::train, sharding::none, 4).part(step_part::bubble),
      step_run_of({.pipeline = 4}, step_task::train, sharding::none, 16).part(step_part::bubble) *
          0.9);
}

TEST(step_run, gradients_that_are_sharded_are_reduced_for_every_micro_batch) {
  const step_run_of once({.data = 8}, step_task::train, sharding::optimizer, 8),
      every({.data = 8}, step_task::train, sharding::gradients, 8);
  EXPECT_GT(sum_of(every->parts()), sum_of(once->parts()));
}

}  // namespace
}  // namespace attnsim::ask
