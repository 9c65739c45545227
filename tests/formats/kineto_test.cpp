#include "formats/kineto.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/expect_error.hpp"
#include "tests/shared_files.hpp"

namespace attnsim::formats {
namespace kineto_test {

using testing::DoubleNear;
using testing::SizeIs;

std::string kernel(const std::string& name, int stream, double start, double duration) {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "{}", "ts": {}, "dur": {}, )"
                     R"("args": {{"device": 0, "stream": {}}}}})",
                     name, start, duration, stream);
}

std::string trace(const std::vector<std::string>& events) {
  return fmt::format(
      R"({{"distributedInfo": {{"rank": 3}}, "deviceProperties": [{{"name": "NVIDIA H100"}}],
"traceEvents": [{{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 2}}, {}]}})",
      fmt::join(events, ",\n"));
}

/// Two steps of a ring: attention, and the shift beside it.
schedule two_steps() {
  schedule s;
  s.streams = {"compute", "ring"};
  s.program = {{.kind = op_kind::shift, .stream = 1},
               {.kind = op_kind::attention},
               {.kind = op_kind::attention},
               {.kind = op_kind::merge}};
  return s;
}

TEST(role_of, knows_kernels_by_name) {
  EXPECT_EQ(role_of("void flash_fwd_kernel<Flash_fwd_kernel_traits<128> >"),
            kernel_role::attention);
  EXPECT_EQ(role_of("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma"),
            kernel_role::attention_backward);
  EXPECT_EQ(role_of("void flash::flash_bwd_dot_do_o_kernel"), kernel_role::other);
  EXPECT_EQ(role_of("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"),
            kernel_role::point_to_point);
  EXPECT_EQ(role_of("ncclKernel_AllGather_RING_LL_Sum_int8_t"), kernel_role::all_gather);
  EXPECT_EQ(role_of("ncclKernel_AllReduce_RING_LL_Sum_float"), kernel_role::other_collective);
  EXPECT_EQ(role_of("ampere_sgemm_128x64_nn"), kernel_role::other);
}

TEST(role_of, knows_attention_of_many_libraries) {
  for (const auto* name :
       {"void flashinfer::PrefillWithKVCacheKernel<flashinfer::FwdParams>",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0>",
        "void flashinfer::mla::BatchMLAPagedAttentionKernel<...>",
        "triton_tem_fused_flex_attention_0", "void qk_int_sv_f8_attn_kernel<128u,64u,32u,64u,128u>",
        "_attn_fwd", "attn_fwd", "kernel_unified_attention_2d",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128",
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<...>>",
        "kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at_0",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "fmhaSm100aKernel_QkvBfloat16OBfloat16H128",
        "void ck_tile::kentry<ck_tile::FmhaFwdKernel<...>>"}) {
    EXPECT_EQ(role_of(name), kernel_role::attention) << name;
  }
  for (const auto* name :
       {"triton_tem_fused_flex_attention_backward_zeros_1", "_attn_bwd", "bwd_kernel_dk_dv",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16",
        "fmha_cutlassB_bf16_aligned_64x64_k128_sm80",
        "void cutlass::device_kernel<flash::FlashAttnBwdSm90<...>>",
        "void ck_tile::kentry<ck_tile::FmhaBwdDQDKDVKernel<...>>"}) {
    EXPECT_EQ(role_of(name), kernel_role::attention_backward) << name;
  }
  for (const auto* name :
       {"void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<...>>", "_attn_bwd_preprocess",
        "void cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<...>>",
        "void flashinfer::VariableLengthMergeStatesKernel<8u, 4u>",
        "void flashinfer::AppendPagedKVCacheKernel<128u>", "quant_per_block_int8_kernel",
        "void transformer_engine::fused_attn::thd_out_correction_kernel<...>",
        "void vllm::reshape_and_cache_flash_kernel<...>", "triton_poi_fused_add_0"}) {
    EXPECT_EQ(role_of(name), kernel_role::other) << name;
  }
}

TEST(read_kineto, counts_attention_of_other_libraries) {
  for (const std::string library : {"flashinfer", "flex", "sage"}) {
    const auto t = read_kineto(read_source("tests/formats/data/kineto/tr_" + library + ".json"));
    std::map<kernel_role, int> kernels;
    for (const auto& k : t.kernels) ++kernels[k.role];
    EXPECT_EQ(kernels, (std::map<kernel_role, int>{{kernel_role::attention, 4},
                                                   {kernel_role::point_to_point, 3}}))
        << library;
  }
}

TEST(read_kineto, keeps_kernels_in_order_from_the_first) {
  const auto t = read_kineto({"f", trace({kernel("flash_fwd", 7, 1000, 50),
                                          kernel("ncclDevKernel_SendRecv", 20, 990, 30)})});
  EXPECT_EQ(t.rank, 3);
  EXPECT_EQ(t.device, "NVIDIA H100");
  ASSERT_THAT(t.kernels, SizeIs(2));
  EXPECT_EQ(t.kernels[0].stream, 20);
  EXPECT_NEAR(t.kernels[1].start.value(), 10e-6, 1e-12);
  EXPECT_NEAR(t.kernels[1].end.value(), 60e-6, 1e-12);
}

TEST(match_kernels, makes_a_timeline_of_each_pass) {
  // First pass: shift 0-30, attention 10-50 and 60-100, a merge 100-105 on the same stream.
  const auto t = read_kineto(
      {"f", trace({kernel("ncclDevKernel_SendRecv", 20, 1000, 30), kernel("flash_fwd", 7, 1010, 40),
                   kernel("flash_fwd", 7, 1060, 40), kernel("elementwise", 7, 1100, 5),
                   kernel("flash_fwd", 7, 2000, 40), kernel("ncclDevKernel_SendRecv", 20, 2010, 10),
                   kernel("flash_fwd", 7, 2045, 40)})});
  const auto passes = match_kernels(t, two_steps());
  ASSERT_THAT(passes, SizeIs(2));
  EXPECT_EQ(passes[0].rank, 3);
  EXPECT_THAT(passes[0].end.value(), DoubleNear(100e-6, 1e-12));
  EXPECT_THAT(passes[0].compute.value(), DoubleNear(80e-6, 1e-12));
  EXPECT_THAT(passes[1].end.value(), DoubleNear(85e-6, 1e-12));
  EXPECT_THAT(passes[1].exposed_communication().value(), DoubleNear(5e-6, 1e-12));
  ASSERT_THAT(passes[0].intervals, SizeIs(3));
  EXPECT_EQ(passes[0].intervals[0].operation, 0u);  // the shift ends first
  EXPECT_EQ(passes[0].intervals[2].operation, 2u);
}

TEST(match_kernels, refuses_a_broken_number_of_passes) {
  const auto t =
      read_kineto({"f", trace({kernel("flash_fwd", 7, 0, 1), kernel("flash_fwd", 7, 2, 1),
                               kernel("flash_fwd", 7, 4, 1)})});
  EXPECT_ERROR(match_kernels(t, two_steps()), input_error,
               "the trace has 3 attention kernels, a pass of the schedule 2: expected 2 for 1 "
               "passes");
}

TEST(read_kineto, refuses_what_is_no_trace) {
  EXPECT_ERROR(read_kineto({"f", "{\n"}), input_error, "f:2: not valid JSON");
  EXPECT_ERROR(read_kineto({"f", "[]"}), input_error,
               "f:1: expected a trace of PyTorch's profiler: an object with a list of traceEvents");
  EXPECT_ERROR(read_kineto({"f", "{\"traceEvents\": []}"}), input_error,
               "f:1: expected kernels among the traceEvents");
  EXPECT_ERROR(
      read_kineto(
          {"f", "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\"}]}"}),
      input_error, "f:1: traceEvents: k: ts: expected microseconds");
  EXPECT_ERROR(read_kineto({"f", std::string(100, '[') + std::string(100, ']')}), input_error,
               "f:1: expected nesting of at most 64");
}

TEST(kineto_traces_of_others, holistic_trace_analysis) {
  const std::string file = "../shared/inputs/traces/hta_kineto_nccl_trimmed.json";
  NEEDS_SHARED(file);
  const auto t = read_kineto(read_source(file));
  EXPECT_EQ(t.device, "NVIDIA A100-PG509-200");
  EXPECT_THAT(t.kernels, SizeIs(465));  // of 600 events; the others are copies and annotations
  const auto first = std::find_if(t.kernels.begin(), t.kernels.end(), [](const auto& k) {
    return k.role == kernel_role::other_collective;
  });
  ASSERT_NE(first, t.kernels.end());
  EXPECT_EQ(first->stream, 40);
  EXPECT_NEAR((first->end - first->start).value(), 2636.669e-6, 1e-9);
  // The first kernel of the trace starts at 4458676983543.183 us, this one at 4458677009853.422.
  EXPECT_NEAR(first->start.value(), 26310.239e-6, 1e-8);
  EXPECT_ERROR(match_kernels(t, two_steps()), input_error,
               "the trace has 0 attention kernels, a pass of the schedule 2: expected a multiple");
}

TEST(kineto_traces_of_others, several_streams) {
  const std::string file = "../shared/inputs/traces/hta_event_sync_multi_stream.json";
  NEEDS_SHARED(file);
  const auto t = read_kineto(read_source(file));
  ASSERT_THAT(t.kernels, SizeIs(3));
  EXPECT_EQ(t.kernels[0].stream, 20);
  EXPECT_EQ(t.kernels[1].stream, 28);
  EXPECT_NEAR(t.kernels[1].start.value(), 397e-6, 1e-6);  // ..349097 after ..348700
}

}  // namespace kineto_test
}  // namespace attnsim::formats
