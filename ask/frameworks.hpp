// What to write into a framework's settings to run a strategy, or why the framework can't run it. One line each in the
// table of frameworks.cpp. Facts from the frameworks' documentation and sources:
//   megatron             docs of --cp-comm-type, TransformerEngine's attention/context_parallel.py
//   trtllm               TensorRT-LLM VisualGen parallel_config (blog 25, pull requests 12943, 13821, 13944, 14961, 16677)
//   usp, xdit            feifeibear/long-context-attention (yunchang), xdit-project/xDiT, docs/methods/usp.md (September 2026)
//   ring-flash-attention zhuzilin/ring-flash-attention
//   torchtitan           pytorch/torchtitan, context_parallel (issue 3086)
//   magiattention        SandAI-org/MagiAttention
//   vllm                 vllm-project/vllm, prefill context parallelism (issue 25749, pull request 28718, November 2025); of latent attention
//                        it gathers latents (vllm-ascend's pull request 14008, August 2026)
//   maxtext              AI-Hypercomputer/maxtext, configs/types.py and attention_op.py (September 2026)
//   vllm-omni            vllm-project/vllm-omni 0.29, docs "Sequence Parallelism", pull requests 1379 (uneven heads), 4968; 7641 gathers
//                        keys between groups of Ulysses (September 2026)
//   sglang-diffusion     sgl-project/sglang, docs "Parallelism Overview", pull request 32667 (July 2026)
//   diffusers            huggingface/diffusers 0.39, ContextParallelConfig: its ring gathers all keys (rotate_method allgather)
//   sglang               sgl-project/sglang, docs "Prefill Context Parallelism", "Decode Context Parallelism" and "DP, DPA", pull
//                        requests 18233, 27928 (June 2026), 34654 (August 2026)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ask/planner.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim {

struct framework {
  std::string_view name;
  /// Empty, or why the framework can't run the strategy.
  std::string (*refusal)(const strategy&, const attention&, pass_kind);
  /// Lines to put into its settings. Precondition: no refusal.
  std::string (*settings)(const strategy&, const attention&);
  /// The same where several groups of ranks have each their part of the batch; none where they are instances of their own.
  std::string (*groups)(const strategy&, const attention&, int groups) = nullptr;
  /// The same for fp8 in kernels or between ranks, where the attention has it; empty where no setting does.
  std::string (*fp8)(const strategy&, const attention&) = nullptr;
  /// What it gathers of latent attention's keys and values is latents.
  bool gathers_latents = false;
};

std::span<const framework> frameworks();

/// One value of Megatron-LM's --cp-comm-type and what TransformerEngine's context parallelism can do with it, full and
/// causal masks apart (context_parallel.py, attn_forward_func_with_cp; issue 2541).
struct cp_comm_type {
  std::string_view name;
  std::string_view schedule;
  bool window;     ///< sliding windows
  bool sink;       ///< attention sinks: softmax_type learnable or off-by-one
  bool documents;  ///< packed: qkv_format thd
};
std::span<const cp_comm_type> cp_comm_types();

/// The type that runs a strategy. Precondition: its schedule is ring, allgather, ulysses or usp.
const cp_comm_type& cp_comm_type_of(const strategy&);

/// Throws input_error that lists the names.
const framework& find_framework(std::string_view name);

/// Settings for the best candidate that the framework can run, and why not for those before it.
struct emitted_settings {
  std::vector<std::string> refusals;  ///< one a candidate before
  std::string lines;                  ///< for the candidate after those
};

/// Throws infeasible when it can run none of the candidates.
emitted_settings settings_of_best(const framework&, const plan_result&);

}  // namespace attnsim
