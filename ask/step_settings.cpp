#include "ask/step_settings.hpp"

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/named.hpp"

namespace attnsim::ask {
namespace {

pass_kind passes_asked(const step_answer& a) {
  return a.task == step_task::prefill ? pass_kind::forward : pass_kind::both;
}

/// Of the ranks that share a sequence; none: empty.
std::string attention_refusal(const framework& f, const step_answer& a) {
  if (a.cut.context == 1) return "";
  return f.refusal(a.attention.chosen, a.attention.problem, passes_asked(a));
}

// --- Megatron-LM ---------------------------------------------------------------------------------

std::string megatron_step_refusal(const step_answer& a) {
  if (a.task == step_task::prefill) return "trains only";
  if (a.shard == sharding::gradients || a.shard == sharding::parameters)
    return "shards the optimizer only (its FSDP variants are settings of their own)";
  if (a.recompute == recomputation::selective)
    return "recomputes selectively what FlashAttention never keeps";
  return "";
}

std::string megatron_step_settings(const step_answer& a) {
  const auto& cut = a.cut;
  std::string text;
  const auto add = [&](std::string_view flag, auto value) {
    text += fmt::format("{} {}\n", flag, value);
  };
  if (cut.tensor > 1) text += "--sequence-parallel\n";
  if (cut.pipeline > 1) add("--pipeline-model-parallel-size", cut.pipeline);
  if (cut.chunks > 1) add("--num-virtual-stages-per-pipeline-rank", cut.chunks);
  if (cut.expert > 1) add("--expert-model-parallel-size", cut.expert);
  add("--seq-length", a.sequence);
  add("--micro-batch-size", a.micro_batch);
  add("--global-batch-size", a.global_batch);
  if (a.shard == sharding::optimizer) {
    text += "--use-distributed-optimizer\n--overlap-grad-reduce\n--overlap-param-gather\n";
  }
  if (a.recompute == recomputation::full) {
    text += "--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1\n";
  }
  text += "--bf16\n";
  if (a.dtype == step_type::fp8_linear) text += "--fp8-format hybrid\n";
  return text;
}

// --- torchtitan ----------------------------------------------------------------------------------

std::string torchtitan_step_refusal(const step_answer& a) {
  if (a.task == step_task::prefill) return "trains only";
  if (a.shard != sharding::parameters) return "shards the parameters (FSDP)";
  if (a.cut.chunks > 1) return "names its pipeline's schedule, not its chunks";
  return "";
}

std::string torchtitan_step_settings(const step_answer& a) {
  auto text = fmt::format(
      "[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n\n[parallelism]\n"
      "data_parallel_shard_degree = {}\ntensor_parallel_degree = {}\ncontext_parallel_degree = {}\n"
      "pipeline_parallel_degree = {}\n",
      a.micro_batch, a.global_batch, a.sequence, a.cut.data, a.cut.tensor, a.cut.context,
      a.cut.pipeline);
  if (a.cut.expert > 1) text += fmt::format("expert_parallel_degree = {}\n", a.cut.expert);
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n", name_of(a.recompute));
  if (a.dtype == step_type::fp8_linear) text += "\n[model]\nconverters = [\"float8\"]\n";
  return text;
}

struct step_framework {
  std::string_view name;
  std::string (*refusal)(const step_answer&);
  std::string (*settings)(const step_answer&);
  bool attention_apart;  ///< attention's settings are not among the step's
};

constexpr step_framework step_frameworks[] = {
    {"megatron", megatron_step_refusal, megatron_step_settings, true},
    {"torchtitan", torchtitan_step_refusal, torchtitan_step_settings, false},
};

const step_framework& find_step_framework(std::string_view name) {
  try {
    return find_named(step_frameworks, name);
  } catch (const std::invalid_argument& e) {
    throw input_error(asked("emit"), std::string(name), e.what());
  }
}

}  // namespace

std::string step_refusal(std::string_view name, const step_answer& a) {
  const auto refused = find_step_framework(name).refusal(a);
  return refused.empty() ? attention_refusal(find_framework(name), a) : refused;
}

std::string step_settings(std::string_view name, const step_answer& a) {
  const auto& f = find_step_framework(name);
  std::string text;
  if (f.attention_apart) {
    if (a.cut.context > 1) {
      text = find_framework(name).settings(a.attention.chosen, a.attention.problem);
    } else if (a.cut.tensor > 1) {
      text = fmt::format("--tensor-model-parallel-size {}\n", a.cut.tensor);
    }
  }
  return text + f.settings(a);
}

emitted_settings settings_of_best(std::string_view name, const step_plan& plan) {
  find_step_framework(name);
  emitted_settings found;
  for (const auto& a : plan.candidates) {
    const auto refused = step_refusal(name, a);
    if (refused.empty()) {
      found.lines = step_settings(name, a);
      return found;
    }
    found.refusals.push_back(refused);
  }
  throw infeasible(asked("emit"), std::string(name),
                   fmt::format("can do none of the {} best; try other schedules, sharding or "
                               "recomputation",
                               plan.candidates.size()));
}

}  // namespace attnsim::ask
