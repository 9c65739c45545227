#include "ask/figures.hpp"

#include <type_traits>

namespace attnsim::ask {
namespace {

/// Times in seconds, enumerators by name.
template <typename T>
value as_value(const T& v) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(v));
  } else if constexpr (std::is_same_v<T, seconds> || std::is_same_v<T, byte_count>) {
    return v.value();
  } else {
    return v;
  }
}

template <auto Member, typename Answer>
value of(const Answer& a) {
  return as_value(a.*Member);
}
/// Of the strategy that the prediction is about.
template <auto Member>
value chosen(const prediction& p) {
  return as_value(p.chosen.*Member);
}

value schema(const prediction&) {
  return "attnsim.prediction.1";
}
value levels(const prediction& p) {
  return written(p.chosen.levels);
}
value parts(const prediction& p) {
  return std::int64_t{p.chosen.parts};
}
value keys_sent(const prediction& p) {
  return std::string(name_of(p.chosen.keys_sent));
}
value shares(const prediction& p) {
  return std::vector<std::int64_t>(p.chosen.shares.begin(), p.chosen.shares.end());
}
value grid(const prediction& p) {
  return whole_pair(p.chosen.rows, p.chosen.cols);
}
value interval(const prediction& p) {
  return number_pair(p.low.value(), p.high.value());
}
value bytes_sent(const prediction& p) {
  return std::vector<part>{{"max", p.most_bytes_sent.value()}, {"mean", p.mean_bytes_sent}};
}
value tera_rate(const prediction& p) {
  return p.rate_per_device.value() / 1e12;
}
value tera_work(const prediction& p) {
  return p.rate_per_device.value() * p.time.value() / 1e12;
}
value cache(const prediction& p) {
  return p.passes.empty() ? std::int64_t{} : p.passes.front().memory.cache.value();
}
double new_tokens(const prediction& p) {
  return static_cast<double>(p.problem.sequence - p.problem.padding);
}
value value_elements(const attention& a) {
  return a.value_dim();
}
value type_on_the_wire(const attention& a) {
  return std::string(name_of(a.wire_dtype.value_or(a.dtype)));
}
value token_rate(const prediction& p) {
  return p.time > seconds() ? static_cast<double>(p.problem.batch) * new_tokens(p) / p.time.value()
                            : 0.0;
}
value token_time(const prediction& p) {
  return new_tokens(p) > 0 ? p.time.value() / new_tokens(p) : 0.0;
}
value bound_by(const prediction& p) {
  const auto& b = p.bottleneck;
  return std::vector<part>{{"kind", b.kind}, {"name", b.name}, {"share", b.share}};
}
value limit(const prediction& p) {
  return p.limit.time.value();
}
value times_limit(const prediction& p) {
  return p.limit.time > seconds() ? p.time / p.limit.time : 0.0;
}
value limit_bound_by(const prediction& p) {
  return p.limit.bound_by;
}

const figure<prediction> of_prediction[] = {
    {"schema", "", "of these figures", schema},
    {"cluster", "", "its name", of<&prediction::cluster>},
    {"ranks", "", "devices that take part", of<&prediction::ranks>},
    {"schedule", "", "algorithm", chosen<&strategy::schedule>},
    {"grid", "", "rows and columns of ranks", grid},
    {"ulysses", "", "ranks of a group that exchanges tokens for heads", chosen<&strategy::ulysses>},
    {"tp", "", "tensor-parallel ranks", chosen<&strategy::tensor_parallel>},
    {"dp", "", "groups of ranks, each with its part of the batch", of<&prediction::data_parallel>},
    {"tokens", "", "contiguous, zigzag or striped", chosen<&strategy::tokens>},
    {"placement", "", "which ranks share a node", chosen<&strategy::placement>},
    {"kv_order", "", "direct or transposed", chosen<&strategy::order>},
    {"levels", "", "of a composed schedule: what the ranks along each axis do", levels},
    {"keys_sent", "", "expanded or latent: what travels of keys and values", keys_sent},
    {"parts", "", "of the heads, one after the other", parts},
    {"shares", "", "of the tokens, by chunk; empty: equal", shares},
    {"by", "", "simulation or analytic", of<&prediction::by>},
    {"time_s", "s", "of all passes, on the slowest rank", of<&prediction::time>},
    {"time_interval_s", "s", "low and high, by the profile's stated uncertainties", interval},
    {"compute_s", "s", "the device computes", of<&prediction::compute>},
    {"exposed_communication_s", "s", "the device waits for data",
     of<&prediction::exposed_communication>},
    {"host_s", "s", "what the host takes to launch it all; 0 without a host",
     of<&prediction::host>},
    {"bytes_sent_per_rank", "bytes", "by the rank that sends most, and on average", bytes_sent},
    {"peak_memory_bytes", "bytes", "on the rank that takes most", of<&prediction::peak_memory>},
    {"cache_bytes", "bytes", "of them K and V, as a cache keeps them for later tokens", cache},
    {"tokens_per_second", "tokens/s", "of all sequences, without cached ones, through this layer",
     token_rate},
    {"time_per_token_s", "s",
     "time over the tokens of a sequence, without cached ones: this layer's", token_time},
    {"tflops_per_device", "TFLOP/s", "useful operations by ranks and time", tera_rate},
    {"tflop_per_device", "TFLOP", "useful operations by ranks", tera_work},
    {"bottleneck", "", "what bounds the longest pass, and the share of the time it is busy",
     bound_by},
    {"limit_s", "s", "what no schedule can beat, each rank home to as many tokens", limit},
    {"times_limit", "", "time over the limit", times_limit},
    {"limit_bound_by", "", "work, latency, or the links that all bytes between two parts cross",
     limit_bound_by},
    {"feasible", "", "it fits the device's memory", of<&prediction::feasible>},
    {"warnings", "", "in words", of<&prediction::warnings>},
};

const figure<pass_prediction> of_pass[] = {
    {"name", "", "forward or backward", of<&pass_prediction::pass>},
    {"time_s", "s", "on the slowest rank", of<&pass_prediction::time>},
    {"compute_s", "s", "the device computes", of<&pass_prediction::compute>},
    {"exposed_communication_s", "s", "the device waits for data",
     of<&pass_prediction::exposed_communication>},
    {"host_s", "s", "what the host takes to launch it", of<&pass_prediction::host>},
};

const figure<attention> of_attention[] = {
    {"seq", "", "tokens, including the padding", of<&attention::sequence>},
    {"padding", "", "trailing tokens without data", of<&attention::padding>},
    {"prefix", "", "cached tokens before the sequence", of<&attention::prefix>},
    {"cache_lengths", "", "cached tokens of each request of a batch; empty: all alike",
     of<&attention::prefixes>},
    {"kv_seq", "", "tokens of another sequence that is attended to; 0: none",
     of<&attention::kv_sequence>},
    {"batch", "", "sequences", of<&attention::batch>},
    {"heads", "", "query heads", of<&attention::heads>},
    {"kv_heads", "", "key and value heads", of<&attention::kv_heads>},
    {"head_dim", "", "elements of a head, of queries and keys", of<&attention::head_dim>},
    {"v_head_dim", "", "of values and outputs", value_elements},
    {"mask", "", "full or causal", of<&attention::mask>},
    {"window", "", "sliding window in tokens; 0: none", of<&attention::window>},
    {"keep_first", "", "first tokens that the window keeps visible", of<&attention::kept_first>},
    {"latent", "", "values are in the keys, as in absorbed latent attention",
     of<&attention::latent>},
    {"sinks", "", "a logit a head in the softmax's denominator", of<&attention::sinks>},
    {"documents", "", "tokens of each packed document; empty: one", of<&attention::documents>},
    {"dtype", "", "bf16, fp16, fp32 or fp8", of<&attention::dtype>},
    {"wire_dtype", "", "of queries, keys and values between ranks", type_on_the_wire},
};

}  // namespace

template <>
std::span<const figure<attention>> figures() {
  return of_attention;
}

template <>
std::span<const figure<prediction>> figures() {
  return of_prediction;
}

template <>
std::span<const figure<pass_prediction>> figures() {
  return of_pass;
}

}  // namespace attnsim::ask
