#include "ask/step_settings.hpp"

#include <gtest/gtest.h>

#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

step_answer trained_step() {
  step_answer a{.cut = {.tensor = 4, .context = 8, .data = 2, .pipeline = 2, .chunks = 2},
                .shard = sharding::optimizer,
                .sequence = 131072,
                .global_batch = 16,
                .micro_batch = 1,
                .micro_batches = 8};
  a.attention.chosen = {.schedule = "ring", .rows = 8, .cols = 1, .tensor_parallel = 4};
  a.attention.problem = {.heads = 32, .kv_heads = 8, .sequence = 131072};
  return a;
}

TEST(step_settings, of_megatron) {
  auto a = trained_step();
  a.dtype = step_type::fp8_linear;
  a.recompute = recomputation::full;
  EXPECT_EQ(step_refusal("megatron", a), "");
  EXPECT_EQ(step_settings("megatron", a),
            "--tensor-model-parallel-size 4\n--context-parallel-size 8\n--cp-comm-type p2p\n"
            "--sequence-parallel\n--pipeline-model-parallel-size 2\n"
            "--num-virtual-stages-per-pipeline-rank 2\n--seq-length 131072\n"
            "--micro-batch-size 1\n--global-batch-size 16\n--use-distributed-optimizer\n"
            "--overlap-grad-reduce\n--overlap-param-gather\n--recompute-granularity full\n"
            "--recompute-method uniform\n--recompute-num-layers 1\n--bf16\n--fp8-format hybrid\n");
}

TEST(step_settings, of_torchtitan) {
  auto a = trained_step();
  a.shard = sharding::parameters;
  a.cut.chunks = 1;
  a.attention.chosen.schedule = "allgather";
  EXPECT_EQ(step_refusal("torchtitan", a), "");
  EXPECT_EQ(step_settings("torchtitan", a),
            "[training]\nlocal_batch_size = 1\nglobal_batch_size = 16\nseq_len = 131072\n\n"
            "[parallelism]\ndata_parallel_shard_degree = 2\ntensor_parallel_degree = 4\n"
            "context_parallel_degree = 8\npipeline_parallel_degree = 2\n\n"
            "[activation_checkpoint]\nmode = \"none\"\n");
}

TEST(step_settings, what_a_framework_cannot_do_is_said_of_each) {
  auto sharded = trained_step();
  sharded.shard = sharding::parameters;
  const step_plan plan{.candidates = {sharded, trained_step()}};
  const auto found = settings_of_best("megatron", plan);
  ASSERT_EQ(found.refusals.size(), 1u);
  EXPECT_EQ(found.refusals[0],
            "shards the optimizer only (its FSDP variants are settings of their own)");
  EXPECT_EQ(found.lines, step_settings("megatron", trained_step()));
  EXPECT_ERROR(settings_of_best("torchtitan", {.candidates = {trained_step()}}), infeasible,
               "emit: 'torchtitan': can do none of the 1 best; try other schedules, sharding or "
               "recomputation");
  EXPECT_ERROR(settings_of_best("vllm", plan), input_error,
               "emit: 'vllm': expected one of: megatron, torchtitan");
}

TEST(step_settings, of_attention_that_a_framework_cannot_run_are_refused) {
  auto a = trained_step();
  a.attention.chosen.schedule = "attention2d";
  EXPECT_NE(step_refusal("megatron", a), "");
  a.cut.context = 1;
  EXPECT_EQ(step_refusal("megatron", a), "");
}

}  // namespace
}  // namespace attnsim::ask
