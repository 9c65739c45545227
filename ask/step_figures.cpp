#include "ask/step_figures.hpp"

namespace attnsim::ask {
namespace {

std::int64_t whole(double bytes) {
  return static_cast<std::int64_t>(bytes);
}

value parts_of(const step_answer& a) {
  double exposed = 0;
  for (const auto p : {step_part::tensor, step_part::expert, step_part::data}) exposed += a.part(p);
  return std::vector<part>{{"matmul_s", a.part(step_part::products)},
                           {"attention_s", a.part(step_part::attention)},
                           {"elementwise_s", a.part(step_part::elementwise)},
                           {"exposed_communication_s", exposed},
                           {"tensor_exchange_s", a.part(step_part::tensor)},
                           {"expert_exchange_s", a.part(step_part::expert)},
                           {"data_exchange_s", a.part(step_part::data)},
                           {"bubble_s", a.part(step_part::bubble)},
                           {"optimizer_s", a.part(step_part::optimizer)}};
}

value memory_parts(const step_answer& a) {
  const auto& m = a.memory;
  return std::vector<part>{
      {"parameters", whole(m.parameters)}, {"gradients", whole(m.gradients)},
      {"optimizer", whole(m.optimizer)},   {"activations", whole(m.activations)},
      {"buffers", whole(m.buffers)},       {"workspace", whole(m.workspace)}};
}

value peaks(const step_answer& a) {
  std::vector<std::int64_t> all;
  for (const double peak : a.peak_by_rank) all.push_back(whole(peak));
  return all;
}

double attention_share(const step_answer& a) {
  return a.time > seconds() ? a.part(step_part::attention) / a.time.value() : 0.0;
}

const figure<step_answer> of_step[] = {
    {"schema", "", "of these figures",
     [](const step_answer&) -> value { return "attnsim.step.1"; }},
    {"cluster", "", "its name", [](const step_answer& a) -> value { return a.cluster; }},
    {"model", "", "its name", [](const step_answer& a) -> value { return a.model; }},
    {"task", "", "train or prefill",
     [](const step_answer& a) -> value { return std::string(name_of(a.task)); }},
    {"dtype", "", "bf16 or fp8-linear",
     [](const step_answer& a) -> value { return std::string(name_of(a.dtype)); }},
    {"ranks", "", "devices that take part",
     [](const step_answer& a) -> value { return std::int64_t{a.cut.ranks()}; }},
    {"degrees", "", "ranks of each kind of parallelism; vp: chunks of layers a pipeline rank",
     [](const step_answer& a) -> value {
       return std::vector<part>{
           {"tp", std::int64_t{a.cut.tensor}},   {"cp", std::int64_t{a.cut.context}},
           {"pp", std::int64_t{a.cut.pipeline}}, {"vp", std::int64_t{a.cut.chunks}},
           {"dp", std::int64_t{a.cut.data}},     {"ep", std::int64_t{a.cut.expert}}};
     }},
    {"shard", "", "what ranks with the same parameters keep once",
     [](const step_answer& a) -> value { return std::string(name_of(a.shard)); }},
    {"recompute", "", "none, selective or full",
     [](const step_answer& a) -> value { return std::string(name_of(a.recompute)); }},
    {"schedule", "", "attention's algorithm",
     [](const step_answer& a) -> value { return a.attention.chosen.schedule; }},
    {"grid", "", "rows and columns of attention's ranks",
     [](const step_answer& a) -> value {
       return whole_pair(a.attention.chosen.rows, a.attention.chosen.cols);
     }},
    {"ulysses", "", "ranks of a group that exchanges tokens for heads",
     [](const step_answer& a) -> value { return std::int64_t{a.attention.chosen.ulysses}; }},
    {"seq", "", "tokens of a sequence", [](const step_answer& a) -> value { return a.sequence; }},
    {"prefix", "", "cached tokens before each sequence",
     [](const step_answer& a) -> value { return a.prefix; }},
    {"global_batch", "", "sequences of a step",
     [](const step_answer& a) -> value { return a.global_batch; }},
    {"micro_batch", "", "sequences that pass the layers together",
     [](const step_answer& a) -> value { return a.micro_batch; }},
    {"micro_batches", "", "that pass a pipeline in a step",
     [](const step_answer& a) -> value { return std::int64_t{a.micro_batches}; }},
    {"step_time_s", "s", "of a step; of a prefill, to the first token",
     [](const step_answer& a) -> value { return a.time.value(); }},
    {"step_time_interval_s", "s", "low and high, by the profile's stated uncertainties",
     [](const step_answer& a) -> value { return number_pair(a.low.value(), a.high.value()); }},
    {"tokens_per_s_per_device", "tokens/s", "of all devices, by their number",
     [](const step_answer& a) -> value { return a.tokens_a_second; }},
    {"model_tflops_per_device", "TFLOP/s",
     "6 for each active parameter and token, 12 for each visible pair and element of a head, "
     "nothing "
     "computed again; a prefill a third",
     [](const step_answer& a) -> value { return a.model_rate.value() / 1e12; }},
    {"model_flops_utilisation", "", "the same over the device's bf16 peak",
     [](const step_answer& a) -> value { return a.utilisation; }},
    {"parts", "s",
     "what the pipeline rank that is busy longest spends its time on: they add up to the step "
     "(exposed_communication_s has the three exchanges together)",
     parts_of},
    {"attention_share", "", "of the step's time, its exchanges included",
     [](const step_answer& a) -> value { return attention_share(a); }},
    {"step_speedup_by_attention", "",
     "of the step if attention were 2 or 4 times as fast, or took no time",
     [](const step_answer& a) -> value {
       return std::vector<part>{{"twice", a.speedup_of_attention[0]},
                                {"four_times", a.speedup_of_attention[1]},
                                {"free", a.speedup_of_attention[2]}};
     }},
    {"attention_layer_s", "s", "one layer's attention of one micro-batch, forward and backward",
     [](const step_answer& a) -> value { return a.attention.time.value(); }},
    {"bottleneck", "", "the part that takes most, what holds it up, its share of the time",
     [](const step_answer& a) -> value {
       return std::vector<part>{
           {"kind", a.bottleneck.kind}, {"name", a.bottleneck.name}, {"share", a.bottleneck.share}};
     }},
    {"peak_memory_bytes", "bytes", "on the pipeline rank that holds most",
     [](const step_answer& a) -> value { return whole(a.memory.total()); }},
    {"memory", "bytes", "of them by kind", memory_parts},
    {"peak_memory_by_pipeline_rank_bytes", "bytes", "of each", peaks},
    {"feasible", "", "it fits the device's memory",
     [](const step_answer& a) -> value { return a.feasible; }},
    {"warnings", "", "in words", [](const step_answer& a) -> value { return a.warnings; }},
};

}  // namespace

template <>
std::span<const figure<step_answer>> figures() {
  return of_step;
}

}  // namespace attnsim::ask
