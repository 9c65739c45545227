#include "ask/frameworks.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace frameworks_test {

const attention causal{.heads = 32, .kv_heads = 8, .sequence = 1 << 17};
const attention full{.heads = 32, .kv_heads = 8, .sequence = 1 << 17, .mask = mask_kind::full};

std::string refusal_of(const char* name, const strategy& s, const attention& a,
                       pass_kind pass = pass_kind::both) {
  return find_framework(name).refusal(s, a, pass);
}

std::string settings_of(const char* name, const strategy& s, const attention& a) {
  return find_framework(name).settings(s, a);
}

const strategy usp{.schedule = "usp", .rows = 2, .cols = 1, .ulysses = 8};
const strategy ring{.schedule = "ring", .rows = 16, .cols = 1};
const strategy grid{.schedule = "attention2d", .rows = 2, .cols = 4, .ulysses = 2};

TEST(frameworks, megatron) {
  EXPECT_EQ(refusal_of("megatron", usp, causal), "");
  EXPECT_EQ(settings_of("megatron", usp, causal),
            "--context-parallel-size 16\n--cp-comm-type a2a+p2p\n"
            "--hierarchical-context-parallel-sizes 8 2\n");
  EXPECT_EQ(settings_of("megatron", ring, causal),
            "--context-parallel-size 16\n--cp-comm-type p2p\n");
  EXPECT_EQ(refusal_of("megatron", grid, causal),
            "has no attention2d; offers ring (p2p), allgather, ulysses (a2a) and usp (a2a+p2p)");
}

// TransformerEngine's window_size has what lies before a token; gpt-oss has learned sinks.
TEST(frameworks, megatron_is_told_of_windows_and_sinks) {
  auto a = causal;
  a.window = 128;
  a.sinks = true;
  const strategy ulysses{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4};
  EXPECT_EQ(refusal_of("megatron", ulysses, a), "");
  EXPECT_EQ(settings_of("megatron", ulysses, a),
            "--context-parallel-size 4\n--cp-comm-type a2a\n--window-size 127,0\n"
            "--softmax-type learnable\n");
}

// TransformerEngine: sliding windows with all_gather and a2a only.
TEST(frameworks, megatron_takes_no_window_in_a_ring) {
  auto windowed = causal;
  windowed.window = 4096;
  EXPECT_EQ(refusal_of("megatron", ring, windowed), "has no sliding window in a ring of K/V");
  const strategy gather{.schedule = "allgather", .rows = 16, .cols = 1};
  EXPECT_EQ(refusal_of("megatron", gather, windowed), "");
  const strategy ulysses{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 8};
  EXPECT_EQ(refusal_of("megatron", ulysses, windowed), "");
}

TEST(frameworks, megatron_wants_zigzag_tokens_and_even_heads) {
  auto striped = ring;
  striped.tokens = token_layout::striped;
  EXPECT_EQ(refusal_of("megatron", striped, causal),
            "lays causal tokens out zigzag only (DualChunkSwap)");
  EXPECT_EQ(refusal_of("megatron", striped, full), "");
  const strategy wide{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 16};
  EXPECT_EQ(refusal_of("megatron", wide, causal),
            "32 query and 8 K/V heads a rank are not multiples of Ulysses degree 16");
  auto split = usp;
  split.tensor_parallel = 2;
  EXPECT_EQ(refusal_of("megatron", split, causal),
            "16 query and 4 K/V heads a rank are not multiples of Ulysses degree 8");
}

TEST(frameworks, cp_comm_type_that_runs_a_strategy) {
  EXPECT_EQ(cp_comm_type_of(ring).name, "p2p");
  EXPECT_EQ(cp_comm_type_of(usp).name, "a2a+p2p");
  EXPECT_EQ(cp_comm_type_of({.schedule = "usp", .rows = 1, .cols = 1, .ulysses = 8}).name, "a2a");
  EXPECT_EQ(cp_comm_type_of({.schedule = "allgather", .rows = 16, .cols = 1}).name, "allgather");
}

TEST(frameworks, trtllm) {
  EXPECT_EQ(refusal_of("trtllm", grid, full, pass_kind::forward), "");
  EXPECT_EQ(settings_of("trtllm", grid, full),
            "parallel_config:\n  ulysses_size: 2\n  attn2d_size: [2, 4]\n");
  EXPECT_EQ(refusal_of("trtllm", grid, causal, pass_kind::forward),
            "is for full masks only (diffusion models)");
  EXPECT_EQ(refusal_of("trtllm", grid, full), "has no backward pass (inference)");
}

TEST(frameworks, usp_and_xdit) {
  EXPECT_EQ(settings_of("usp", usp, causal),
            "set_seq_parallel_pg(ulysses_degree=8, ring_degree=2, rank, world_size)\n"
            "LongContextAttention(ring_impl_type=\"zigzag\")\n");
  EXPECT_EQ(settings_of("xdit", usp, full), "--ulysses_degree 8 --ring_degree 2\n");
  EXPECT_EQ(refusal_of("xdit", usp, causal), "is for full masks only (diffusion models)");
}

TEST(frameworks, the_others) {
  EXPECT_EQ(settings_of("ring-flash-attention", ring, causal), "zigzag_ring_flash_attn_func\n");
  const strategy gather{.schedule = "allgather", .rows = 16, .cols = 1};
  EXPECT_EQ(settings_of("torchtitan", gather, causal),
            "--parallelism.context_parallel_degree 16\n");
  EXPECT_EQ(settings_of("magiattention", gather, causal),
            "chunk_size=1024\nMAGI_ATTENTION_HIERARCHICAL_COMM=0\n");
  EXPECT_EQ(refusal_of("torchtitan", ring, causal), "has no ring; offers allgather");
}

TEST(frameworks, packed_documents) {
  const attention packed{
      .heads = 32, .kv_heads = 8, .sequence = 1 << 17, .documents = {1 << 16, 1 << 16}};
  EXPECT_EQ(refusal_of("megatron", ring, packed), "");
  EXPECT_EQ(settings_of("megatron", ring, packed),
            "--context-parallel-size 16\n--cp-comm-type p2p\n");
  EXPECT_EQ(refusal_of("megatron", usp, packed), "has no packed documents with a2a+p2p");
  auto stream = ring;
  stream.tokens = token_layout::zigzag_stream;
  EXPECT_EQ(refusal_of("megatron", stream, packed),
            "lays causal tokens out zigzag only (DualChunkSwap)");
  EXPECT_EQ(settings_of("ring-flash-attention", ring, packed),
            "zigzag_ring_flash_attn_varlen_func\n");
  EXPECT_EQ(refusal_of("ring-flash-attention", stream, packed),
            "lays causal tokens out zigzag only (zigzag_ring_flash_attn_varlen_func)");
  EXPECT_EQ(refusal_of("usp", ring, packed), "has no packed documents");
  strategy gather{.schedule = "allgather", .rows = 16, .cols = 1};
  EXPECT_EQ(refusal_of("torchtitan", gather, packed),
            "lays causal tokens out zigzag-stream only (head-tail load balance)");
  gather.tokens = token_layout::zigzag_stream;
  EXPECT_EQ(refusal_of("torchtitan", gather, packed), "");
}

TEST(find_framework, lists_the_names) {
  EXPECT_ERROR(find_framework("jax"), input_error,
               "emit: 'jax': expected one of: megatron, trtllm, usp, xdit, "
               "ring-flash-attention, torchtitan, magiattention, vllm, sglang, maxtext, "
               "vllm-omni, sglang-diffusion, diffusers");
}

TEST(frameworks, settings_are_of_the_best_that_it_can_run) {
  plan_result plan{.problem = causal};
  for (const auto& s : {grid, ring, usp}) plan.candidates.emplace_back().chosen = s;
  const auto found = settings_of_best(find_framework("megatron"), plan);
  EXPECT_EQ(found.refusals, std::vector{refusal_of("megatron", grid, causal)});
  EXPECT_EQ(found.lines, settings_of("megatron", ring, causal));
  plan.candidates.resize(1);
  EXPECT_ERROR(
      settings_of_best(find_framework("megatron"), plan), infeasible,
      "emit: 'megatron': can do none of the 1 best; try other schedules or more candidates");
}

// 14 heads on 4 devices: whole heads in groups of 2, or uneven ones.
TEST(frameworks, of_diffusion_models_share_heads_in_groups_or_unevenly) {
  const attention video{.heads = 14, .kv_heads = 14, .sequence = 1 << 16, .mask = mask_kind::full};
  const auto forward = pass_kind::forward;
  const strategy groups{.schedule = "ulysses-allgather", .rows = 2, .cols = 1, .ulysses = 2};
  const strategy uneven{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 4};
  const strategy gather{.schedule = "allgather", .rows = 4, .cols = 1};
  EXPECT_EQ(refusal_of("vllm-omni", groups, video, forward), "");
  EXPECT_EQ(settings_of("vllm-omni", groups, video),
            "DiffusionParallelConfig(ulysses_degree=2, allgather_degree=2)\n");
  EXPECT_EQ(refusal_of("vllm-omni", uneven, video, forward), "");
  EXPECT_EQ(settings_of("vllm-omni", uneven, video),
            "DiffusionParallelConfig(ulysses_degree=4, ulysses_mode=\"advanced_uaa\")\n");
  EXPECT_EQ(refusal_of("vllm-omni", groups, video), "has no backward pass (inference)");
  EXPECT_EQ(settings_of("diffusers", groups, video),
            "ContextParallelConfig(ring_degree=2, ulysses_degree=2)\n");
  EXPECT_EQ(settings_of("diffusers", uneven, video),
            "ContextParallelConfig(ring_degree=1, ulysses_degree=4, ulysses_anything=True)\n");
  EXPECT_EQ(refusal_of("diffusers", ring, full, forward),
            "has no ring; offers allgather (its ring), ulysses, and both");
  EXPECT_EQ(settings_of("sglang-diffusion", gather, video), "--kv-gather-degree 4\n");
  EXPECT_EQ(settings_of("sglang-diffusion", usp, full), "--ulysses-degree 8\n--ring-degree 2\n");
  EXPECT_EQ(refusal_of("sglang-diffusion", groups, video, forward),
            "has no ulysses-allgather; offers ring, allgather, ulysses and usp");
  EXPECT_EQ(refusal_of("sglang-diffusion", uneven, video, forward),
            "14 query and 14 K/V heads a rank are not multiples of Ulysses degree 4");
}

TEST(frameworks, maxtext) {
  const strategy gather{.schedule = "allgather", .rows = 16, .cols = 1};
  EXPECT_EQ(refusal_of("maxtext", gather, causal), "");
  EXPECT_EQ(settings_of("maxtext", gather, causal),
            "ici_context_parallelism=16\ncontext_parallel_strategy=all_gather\n"
            "context_parallel_load_balance=true\n");
  EXPECT_EQ(refusal_of("maxtext", usp, causal), "has no usp; offers ring, allgather and ulysses");
  EXPECT_EQ(refusal_of("maxtext", ring, full), "is for causal masks only");
}

// TransformerEngine has sinks with all-to-alls only.
TEST(frameworks, attention_sinks) {
  attention a = causal;
  a.sinks = true;
  EXPECT_EQ(refusal_of("megatron", ring, a), "has no attention sinks with p2p");
  EXPECT_EQ(refusal_of("megatron", {.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 8}, a),
            "");
  EXPECT_EQ(refusal_of("usp", ring, a), "has no attention sinks");
}

// Issue 25749 of vLLM, docs of SGLang: keys of a prefill are gathered.
TEST(frameworks, servers_gather_the_keys_of_a_prefill) {
  strategy gather{.schedule = "allgather", .rows = 8, .cols = 1, .tensor_parallel = 2};
  const auto forward = pass_kind::forward;
  EXPECT_EQ(refusal_of("vllm", gather, causal, forward), "");
  EXPECT_EQ(settings_of("vllm", gather, causal),
            "--tensor-parallel-size 2\n--prefill-context-parallel-size 8\n"
            "--max-num-batched-tokens 131072\n");
  EXPECT_EQ(refusal_of("sglang", gather, causal, forward), "");
  EXPECT_EQ(settings_of("sglang", gather, causal),
            "--tp-size 16\n--attn-cp-size 8\n--enable-prefill-cp\n--cp-strategy zigzag\n"
            "--chunked-prefill-size 131072\n");
  gather.tokens = token_layout::striped;
  EXPECT_EQ(refusal_of("vllm", gather, causal, forward),
            "lays causal tokens out zigzag only (head-tail chunks)");
  EXPECT_EQ(refusal_of("sglang", gather, causal, forward),
            "lays causal tokens out zigzag only (interleave is of sparse attention)");
  EXPECT_EQ(refusal_of("sglang", ring, causal, forward),
            "has no ring; offers allgather, and to decode dcp, dcp-a2a and helix");
  EXPECT_EQ(refusal_of("vllm", gather, causal), "has no backward pass (inference)");
}

// Docs of vLLM, context parallel deployment: 8 K/V heads on 16 tensor-parallel ranks would be there twice.
TEST(frameworks, vllm_shards_the_cache_over_copies_of_key_heads) {
  strategy s{.schedule = "dcp", .rows = 2, .cols = 1, .tensor_parallel = 8};
  s.tokens = token_layout::striped;
  const attention a{.heads = 64, .kv_heads = 8, .sequence = 1, .prefix = 1 << 20};
  EXPECT_EQ(refusal_of("vllm", s, a, pass_kind::forward), "");
  EXPECT_EQ(settings_of("vllm", s, a),
            "--tensor-parallel-size 16\n--decode-context-parallel-size 2\n"
            "--max-model-len 1048577\n--max-num-seqs 1\n");
  s.schedule = "dcp-a2a";
  EXPECT_EQ(settings_of("vllm", s, a),
            "--tensor-parallel-size 16\n--decode-context-parallel-size 2\n"
            "--dcp-comm-backend a2a\n--max-model-len 1048577\n--max-num-seqs 1\n");
  s.tokens = token_layout::contiguous;
  EXPECT_EQ(refusal_of("vllm", s, a, pass_kind::forward), "deals cached tokens out striped only");
  s.tensor_parallel = 4;
  EXPECT_EQ(refusal_of("vllm", s, a, pass_kind::forward),
            "shards the cache of 8 K/V heads over what tp 8 leaves of the ranks only");
  s.schedule = "helix";
  EXPECT_EQ(refusal_of("vllm", s, a, pass_kind::forward),
            "has no helix; offers allgather, and to decode dcp and dcp-a2a");
}

// Docs of SGLang, Decode Context Parallelism: DeepSeek-V3.1 on 8 ranks.
TEST(frameworks, sglang_shards_the_cache_of_latent_attention) {
  strategy s{.schedule = "dcp-a2a", .rows = 8, .cols = 1};
  s.tokens = token_layout::striped;
  attention a{.batch = 4,
              .heads = 128,
              .kv_heads = 1,
              .head_dim = 576,
              .v_head_dim = 512,
              .sequence = 1,
              .prefix = 1 << 17,
              .latent = true};
  const auto forward = pass_kind::forward;
  const std::string ranks = "--tp-size 8\n--dcp-size 8\n",
                    room = "--context-length 131073\n--max-running-requests 4\n";
  EXPECT_EQ(refusal_of("sglang", s, a, forward), "");
  EXPECT_EQ(settings_of("sglang", s, a),
            ranks + "--dcp-comm-backend a2a\n--no-dcp-replicate-q-proj\n" + room);
  s.schedule = "helix";
  EXPECT_EQ(settings_of("sglang", s, a),
            ranks + "--dcp-comm-backend a2a\n--dcp-replicate-q-proj\n" + room);
  s.schedule = "dcp";
  EXPECT_EQ(settings_of("sglang", s, a), ranks + "--dcp-comm-backend ag_rs\n" + room);
  s.tokens = token_layout::contiguous;
  EXPECT_EQ(refusal_of("sglang", s, a, forward), "deals cached tokens out striped only");
  s.tokens = token_layout::striped;
  a.sinks = true;
  EXPECT_EQ(refusal_of("sglang", s, a, forward), "has no window and no sinks over a sharded cache");
  EXPECT_EQ(refusal_of("sglang", s, {.heads = 64, .kv_heads = 8, .sequence = 1, .prefix = 1 << 20},
                       forward),
            "shards the cache of latent attention only");
}

emitted_settings emitted(const char* name, const strategy& s, const attention& a) {
  plan_result plan{.problem = a, .pass = pass_kind::forward};
  plan.candidates.emplace_back().chosen = s;
  return settings_of_best(find_framework(name), plan);
}

// Groups that share a batch are attention's data parallelism; alone they shard no cache.
TEST(frameworks, sglang_has_groups_in_one_instance) {
  const attention a{.batch = 8,
                    .heads = 128,
                    .kv_heads = 1,
                    .head_dim = 576,
                    .v_head_dim = 512,
                    .sequence = 1,
                    .prefix = 1000,
                    .latent = true};
  plan_result plan{.problem = a, .pass = pass_kind::forward};
  auto& p = plan.candidates.emplace_back();
  p.chosen = {.schedule = "helix", .rows = 2, .cols = 1, .tokens = token_layout::striped};
  p.data_parallel = 4;
  const auto& sglang = find_framework("sglang");
  const std::string room = "--context-length 1001\n--max-running-requests 8\n";
  EXPECT_EQ(settings_of_best(sglang, plan).lines,
            "--tp-size 8\n--dp-size 4\n--enable-dp-attention\n--dcp-size 2\n"
            "--dcp-comm-backend a2a\n--dcp-replicate-q-proj\n" +
                room);
  p.chosen.rows = 1;
  p.data_parallel = 8;
  EXPECT_EQ(settings_of_best(sglang, plan).lines,
            "--tp-size 8\n--dp-size 8\n--enable-dp-attention\n" + room);
}

TEST(frameworks, vllm_gathers_latents) {
  auto latents = causal;
  latents.latent_rank = 512;
  strategy gather{.schedule = "allgather", .rows = 8, .cols = 1};
  gather.keys_sent = key_form::latent;
  EXPECT_EQ(emitted("vllm", gather, latents).lines,
            "--tensor-parallel-size 1\n--prefill-context-parallel-size 8\n"
            "--max-num-batched-tokens 131072\n");
  EXPECT_ERROR(
      emitted("maxtext", gather, latents), infeasible,
      "emit: 'maxtext': can do none of the 1 best; try other schedules or more candidates");
}

// xDiT quantizes exchanges of heads, SGLang what is cached.
TEST(frameworks, fp8_where_a_setting_says_so) {
  auto video = full;
  video.wire_dtype = data_type::fp8;
  const strategy ulysses{.schedule = "ulysses", .rows = 1, .cols = 1, .ulysses = 8};
  EXPECT_EQ(emitted("xdit", ulysses, video).lines,
            "--ulysses_degree 8 --ring_degree 1\n--use_fp8_comms\n");
  EXPECT_ERROR(emitted("xdit", usp, video), infeasible,
               "emit: 'xdit': can do none of the 1 best; try other schedules or more candidates");
  EXPECT_ERROR(emitted("usp", ulysses, video), infeasible,
               "emit: 'usp': can do none of the 1 best; try other schedules or more candidates");
  strategy decode{.schedule = "helix", .rows = 8, .cols = 1};
  decode.tokens = token_layout::striped;
  const attention latents{.heads = 128,
                          .kv_heads = 1,
                          .head_dim = 576,
                          .v_head_dim = 512,
                          .sequence = 1,
                          .prefix = 1 << 17,
                          .latent = true,
                          .dtype = data_type::fp8};
  EXPECT_EQ(emitted("sglang", decode, latents).lines,
            "--tp-size 8\n--dcp-size 8\n--dcp-comm-backend a2a\n--dcp-replicate-q-proj\n"
            "--context-length 131073\n--max-running-requests 1\n--kv-cache-dtype fp8_e4m3\n");
}

TEST(frameworks, none_takes_a_prefix_that_lies_over_the_ranks) {
  auto cached = full;
  cached.prefix = 1 << 20;
  const strategy gather{.schedule = "allgather", .rows = 16, .cols = 1};
  for (const auto* name :
       {"megatron", "ring-flash-attention", "torchtitan", "magiattention", "vllm"})
    EXPECT_EQ(refusal_of(name, gather, cached, pass_kind::forward),
              "has no cached prefix that lies over the ranks")
        << name;
  EXPECT_EQ(refusal_of("sglang", gather, cached, pass_kind::forward),
            "keeps the whole cache on every rank");
  for (const auto* name : {"trtllm", "usp", "xdit"})
    EXPECT_EQ(refusal_of(name, ring, cached, pass_kind::forward),
              "has no cached prefix that lies over the ranks")
        << name;
}

}  // namespace frameworks_test
}  // namespace attnsim
