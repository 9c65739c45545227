#include "ask/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ask/step_run.hpp"
#include "model/cost/clocks.hpp"
#include "model/cost/kernel.hpp"
#include "model/cost/matmul.hpp"

namespace attnsim::ask {
namespace {

/// Sequences and micro-batches of a data-parallel rank.
struct batch_split {
  std::int64_t global = 0;
  int micro_batches = 0;
};

sharding sharding_of(const step_question& q) {
  return q.shard.value_or(sharding::none);
}

degrees degrees_of(const step_question& q, int ranks) {
  const auto tensor = q.tensor.value_or(1), context = q.context.value_or(1),
             pipeline = q.pipeline.value_or(1);
  const auto others = tensor * context * pipeline;
  const auto data = q.data.value_or(std::max<std::int64_t>(1, ranks / others));
  if (others * data != ranks) {
    throw infeasible(asked(q.data ? "dp" : "tp"), std::to_string(q.data ? data : tensor),
                     fmt::format("tp x cp x pp x dp is {} x {} x {} x {}, of {} ranks; feasible: "
                                 "degrees whose product is the ranks, or another number of ranks",
                                 tensor, context, pipeline, data, ranks));
  }
  return {.tensor = static_cast<int>(tensor),
          .context = static_cast<int>(context),
          .data = static_cast<int>(data),
          .pipeline = static_cast<int>(pipeline),
          .expert = static_cast<int>(q.expert.value_or(1)),
          .chunks = static_cast<int>(q.chunks.value_or(1))};
}

void check_model(const step_question& q, const degrees& cut, const transformer& t) {
  if (cut.pipeline * cut.chunks > t.layers) {
    throw infeasible(
        asked(cut.chunks > 1 ? "vp" : "pp"),
        std::to_string(cut.chunks > 1 ? cut.chunks : cut.pipeline),
        fmt::format("{} has {} layers; feasible: pp x vp up to {}", t.name, t.layers, t.layers));
  }
  if (cut.chunks > 1 && cut.pipeline == 1)
    throw input_error(asked("vp"), std::to_string(cut.chunks), "expected with pp of at least 2");
  if (t.experts == 0 && cut.expert > 1) {
    throw input_error(asked("ep"), std::to_string(cut.expert),
                      fmt::format("expected 1: {} has no experts", t.name));
  }
  if (t.experts > 0 && (t.experts % cut.expert != 0 || cut.stage_ranks() % cut.expert != 0)) {
    throw infeasible(
        asked("ep"), std::to_string(cut.expert),
        fmt::format("{} has {} experts, a stage {} ranks; feasible: divisors of both, such as {}",
                    t.name, t.experts, cut.stage_ranks(), std::gcd(t.experts, cut.stage_ranks())));
  }
  if (t.latent > 0 && q.base.prefix > 0) {
    throw input_error(asked("prefix"), std::to_string(q.base.prefix),
                      fmt::format("expected 0: {} caches latents, and making keys and values of "
                                  "cached ones is not modelled",
                                  t.name));
  }
  if (q.task == step_task::prefill && cut.chunks > 1)
    throw input_error(asked("vp"), std::to_string(cut.chunks), "expected 1 for a prefill");
}

batch_split batch_of(const step_question& q, const degrees& cut) {
  const auto unit = q.sequences() * cut.data;
  const auto global = q.global_batch.value_or(unit);
  if (global % unit != 0) {
    throw infeasible(asked("global-batch"), std::to_string(global),
                     fmt::format("expected a multiple of micro-batch x dp, {} x {}; feasible: {}",
                                 q.sequences(), cut.data, (global / unit + 1) * unit));
  }
  constexpr std::int64_t most = 1 << 20;
  if (global / unit > most) {
    throw input_error(asked("global-batch"), std::to_string(global),
                      fmt::format("expected at most {} micro-batches", most));
  }
  return {global, static_cast<int>(global / unit)};
}

layer_setting setting_of(const step_question& q, const degrees& cut, const transformer& t) {
  const auto tokens = q.base.sequence.value_or(0) * q.sequences();
  if (tokens % (std::int64_t{cut.context} * cut.tensor) != 0) {
    throw infeasible(
        asked("seq"), std::to_string(*q.base.sequence),
        fmt::format("expected a multiple of cp x tp, {} x {}", cut.context, cut.tensor));
  }
  return {.model = t,
          .cut = cut,
          .tokens = tokens / cut.context,
          .linear = q.dtype == step_type::fp8_linear ? product_type::fp8 : product_type::half,
          .recomputed = q.task == step_task::prefill ? recomputation::none
                                                     : q.recompute.value_or(recomputation::none),
          .overlaps_tensor = q.tensor_overlap,
          .fused = !q.eager,
          .fused_norms = q.fused_norms,
          .adds_gradients = sharding_of(q) != sharding::parameters,
          .expert_skew = q.expert_skew};
}

question attention_question(const step_question& q) {
  auto asked_attention = q.base;
  asked_attention.tensor_parallel = q.tensor.value_or(1);
  return asked_attention;
}

attention problem_with(const attention& shape, const step_question& q) {
  auto a = shape;
  a.sequence = *q.base.sequence;
  a.prefix = q.base.prefix;
  a.batch = q.sequences();
  return as_framework_has_it(std::move(a), q.base);
}

/// Attention of both kinds of layers, and what a layer takes of it on average.
struct layers_attention {
  const prediction* full = nullptr;
  attention_cost mean;
  double buffers = 0;  ///< bytes
};

void add_share(attention_cost& mean, const prediction& p, double share) {
  for (const auto& pass : p.passes) {
    const auto index = pass.pass == pass_kind::backward ? 1 : 0;
    mean.time[index] += share * pass.time.value();
    mean.sent_bytes[index] += share * static_cast<double>(pass.most_bytes_sent.value());
  }
}

layers_attention attention_of(const step_question& q, const degrees& cut, const transformer& t,
                              known_parts& known) {
  const auto asked_attention = attention_question(q);
  const auto pass = q.task == step_task::prefill ? pass_kind::forward : pass_kind::both;
  const int ranks = cut.tensor * cut.context;
  const auto predicted = [&](const attention& shape) -> const prediction& {
    const auto a = problem_with(shape, q);
    try {
      return known.attention(a, strategy_of(asked_attention, a), ranks, pass, q.base.by);
    } catch (const forward_only& e) {  // a step has a task
      throw input_error(asked("task"), std::string(name_of(q.task)), "expected prefill" + e.why());
    } catch (const input_error& e) {
      if (e.field() == "batch") throw input_error(e.about("micro-batch"));
      throw;
    }
  };
  layers_attention result;
  result.full = &predicted(t.shape);
  const double limited = static_cast<double>(t.limited_layers) / t.layers;
  add_share(result.mean, *result.full, 1 - limited);
  if (limited > 0) add_share(result.mean, predicted(t.limited), limited);
  for (const auto& one : result.full->passes) {
    result.buffers = std::max(result.buffers, static_cast<double>(one.memory.working.value() +
                                                                  one.memory.scratch.value()));
  }
  return result;
}

double cached_bytes(const step_question& q, const layer_setting& s) {
  const double tokens = static_cast<double>((*q.base.sequence + q.base.prefix) * q.sequences());
  const double shared_by =
      s.model.latent > 0 ? 1 : s.cut.tensor;  // every tensor rank has the latents
  return 2 * tokens / s.cut.context * static_cast<double>(s.model.cached_width()) / shared_by;
}

/// By pipeline rank.
std::vector<step_memory> memory_by_rank(const step_question& q, const step_run& run,
                                        const layer_setting& s, int micro_batches,
                                        double attention_buffers) {
  std::vector<step_memory> all;
  for (int rank = 0; rank < s.cut.pipeline; ++rank) {
    auto held = run.held(rank);
    held.attention_buffers = attention_buffers;
    all.push_back(q.task == step_task::prefill
                      ? memory_of_prefill(s, held, cached_bytes(q, s) * micro_batches)
                      : memory_of(s, sharding_of(q), held));
  }
  return all;
}

void use_memory(step_answer& a, const std::vector<step_memory>& by_rank, double room,
                const cluster& c) {
  for (const auto& m : by_rank) {
    if (a.peak_by_rank.empty() || m.total() > a.memory.total()) {
      a.memory = m;
      a.memory_rank = static_cast<int>(a.peak_by_rank.size());
    }
    a.peak_by_rank.push_back(m.total());
  }
  a.feasible = a.memory.total() <= room;
  if (a.feasible) return;
  const std::pair<const char*, double> kinds[] = {
      {"parameters", a.memory.parameters}, {"gradients", a.memory.gradients},
      {"optimizer", a.memory.optimizer},   {"activations", a.memory.activations},
      {"buffers", a.memory.buffers},       {"workspace", a.memory.workspace}};
  const auto* most = std::max_element(std::begin(kinds), std::end(kinds),
                                      [](auto& x, auto& y) { return x.second < y.second; });
  a.lacks = fmt::format("needs {} of the device's {} on pipeline rank {}, most of it {} ({})",
                        to_string(byte_count(static_cast<std::int64_t>(a.memory.total()))),
                        to_string(c.device.memory), a.memory_rank, most->first,
                        to_string(byte_count(static_cast<std::int64_t>(most->second))));
  a.warnings.push_back("out of memory: " + a.lacks);
}

void use_time(step_answer& a, const step_run& run, const transformer& t, const cluster& c,
              step_detail detail) {
  a.parts = run.parts();
  const double time = sum_of(a.parts);
  a.time = seconds(time);
  const double tokens = static_cast<double>(a.global_batch) * static_cast<double>(a.sequence);
  a.tokens_a_second = tokens / time / a.cut.ranks();
  const double forward_share = a.task == step_task::prefill ? 1.0 / 3 : 1;
  a.model_rate = flop_rate(forward_share * model_operations_a_token(t, a.sequence, a.prefix) *
                           a.tokens_a_second);
  a.utilisation = a.model_rate.value() / c.device.peak_half.value();
  constexpr double scales[] = {0.5, 0.25, 0};
  for (std::size_t i = 0; i < 3 && detail == step_detail::all; ++i)
    a.speedup_of_attention[i] = time / sum_of(run.parts(scales[i]));
  const auto most = std::max_element(a.parts.begin(), a.parts.end());
  const auto part = static_cast<step_part>(most - a.parts.begin());
  a.bottleneck = {std::string(name_of(part)),
                  part == step_part::attention ? a.attention.bottleneck.kind : c.device.name,
                  *most / time};
}

/// Below and above the sum of the parts, by the profile's stated uncertainties: of attention as predicted, of all else by its kind.
std::pair<seconds, seconds> doubts_of(const part_times& parts, const prediction& attention,
                                      const cluster& c) {
  const auto& u = c.device.uncertainty;
  const auto part = [&](step_part p) { return parts[static_cast<std::size_t>(p)]; };
  const double computed = part(step_part::products) + part(step_part::elementwise) +
                          part(step_part::optimizer) + part(step_part::bubble);
  const double moved = part(step_part::tensor) + part(step_part::expert) + part(step_part::data);
  const double others = computed * u.compute + moved * u.communication;
  const double attended = part(step_part::attention);
  return {seconds(others + attended * (1 - attention.low / attention.time)),
          seconds(others + attended * (attention.high / attention.time - 1))};
}

void use_interval(step_answer& a, const cluster& c) {
  const auto [below, above] = doubts_of(a.parts, a.attention, c);
  a.low = a.time - below;
  a.high = a.time + above;
}

void add_warnings(step_answer& a, const cluster& c) {
  const auto& alone = a.attention.warnings_alone;
  for (const auto& warning : a.attention.warnings) {
    if (std::find(alone.begin(), alone.end(), warning) == alone.end())
      a.warnings.push_back(warning);
  }
  if (!c.device.matmul.assumed.empty())
    a.warnings.push_back(
        fmt::format("matrix products on {}: assumed: {}", c.device.name, c.device.matmul.assumed));
  if (a.dtype == step_type::fp8_linear && c.device.peak_fp8 <= flop_rate())
    a.warnings.push_back(fmt::format("{} has no fp8 products: they are as bf16's", c.device.name));
}

/// Kernels that were measured with pauses between them have the clocks of an idle start in their tables; a step's settle.
void settle_as_products(attention_cost& mean, const step_question& q, const cluster& c) {
  const auto* kernel = c.device.kernel(q.base.kernel);
  if (!kernel || kernel->basis != basis::measured) return;
  for (double& time : mean.time) time *= c.device.matmul.boost;
}

/// The clock that kernels of a layer share, both passes together.
double clock_of_layer(const attention_cost& mean, const kernel_power& kernel,
                      const layer_setting& s, step_task task, const cluster& c,
                      known_parts& known) {
  const step_costs costs(c, s, sharding::none, {}, known);
  auto layer = costs.layers(pass_kind::forward, {.others = 1}, {});
  const bool trains = task == step_task::train;
  if (trains) layer = layer + costs.layers(pass_kind::backward, {.others = 1}, {});
  const auto part = [&](step_part p) { return layer[static_cast<std::size_t>(p)]; };
  const auto& power = c.device.power;
  const double forwards = trains && s.recomputed == recomputation::full ? 2 : 1;
  const powered_time kernels[] = {
      {power.products, seconds(part(step_part::products) / products_slowdown_alone(power))},
      {kernel.forward, seconds(forwards * mean.time[0])},
      {kernel.backward, seconds(trains ? mean.time[1] : 0)}};
  return shared_clock(power, kernels, seconds(part(step_part::elementwise)));
}

/// Attention at the clocks that it has among a layer's products. Returns what these take there, over what they take one behind the
/// other: nothing else where powers were not measured.
double settle_clocks(attention_cost& mean, const layer_setting& s, const step_question& q,
                     const cluster& c, known_parts& known) {
  const auto* kernel = c.device.kernel(q.base.kernel);
  const auto& power = c.device.power;
  if (!power.present() || !kernel || !kernel->power.present()) {
    settle_as_products(mean, q, c);
    return 1;
  }
  const double clock = clock_of_layer(mean, kernel->power, s, q.task, c, known);
  mean.time[0] *= slowdown_at(power, kernel->power.forward, clock);
  mean.time[1] *= slowdown_at(power, kernel->power.backward, clock);
  return slowdown_at(power, power.products, clock) / products_slowdown_alone(power);
}

/// Products and attention of both passes, one behind the other, run above the clocks that they settle at.
void start_from_idle(layer_answer& a, const matmul_profile& m) {
  seconds before;
  for (auto* pass : {&a.forward, &a.backward}) {
    auto& products = (*pass)[static_cast<std::size_t>(step_part::products)];
    auto& attention = (*pass)[static_cast<std::size_t>(step_part::attention)];
    const seconds own(products + attention);
    const double share = (time_from_idle(m, before + own) - time_from_idle(m, before)) / own;
    products *= share;
    attention *= share;
    before += own;
  }
}

/// Operations of the pipeline rank's products and attention in a micro-batch's passes, at the highest rates.
double least_seconds(const step_question& q, const layer_setting& s, const cluster& c) {
  const auto products = [&](const std::vector<layer_operation>& list) {
    double total = 0;
    for (const auto& op : list) {
      if (op.work == layer_work::product)
        total += op.product.operations().value() / highest_product_rate(c.device, op.type).value();
    }
    return total / products_slowdown_alone(c.device.power);
  };
  const auto a = problem_with(s.model.shape, q);
  const auto limited = problem_with(s.model.limited, q);
  const double windows = static_cast<double>(s.model.limited_layers) / s.model.layers;
  const auto attention = [&](pass_kind pass) {
    const auto rate = highest_rate(c.device, c.device.kernel(q.base.kernel), data_type::bf16, pass);
    const auto work = (1 - windows) * useful_operations(a, pass).value() +
                      windows * useful_operations(limited, pass).value();
    return work / rate.value() / (s.cut.tensor * s.cut.context);
  };
  const auto layer = [&](const layer_setting& one) {
    double total = products(forward_operations(one)) + attention(pass_kind::forward);
    if (q.task == step_task::prefill) return total;
    total += products(backward_operations(one)) + attention(pass_kind::backward);
    if (s.recomputed == recomputation::full) total += attention(pass_kind::forward);
    return total;
  };
  const int dense = s.model.experts > 0 ? s.model.dense_layers : 0;
  const double all =
      (s.model.layers - dense) * layer(s) + (dense > 0 ? dense * layer(without_experts(s)) : 0);
  return all / s.cut.pipeline;
}

}  // namespace

step_bound bound_of(const step_question& q, const cluster& c, const transformer& t) {
  const auto cut = degrees_of(q, ranks_of(q.base, c));
  check_model(q, cut, t);
  const auto batch = batch_of(q, cut);
  const auto setting = setting_of(q, cut, t);
  known_parts known(c);
  const step_costs costs(c, setting, sharding_of(q), {}, known);
  const step_run run(costs, setting, q.task, sharding_of(q), batch.micro_batches, q.sequences());
  step_bound bound;
  for (const auto& m : memory_by_rank(q, run, setting, batch.micro_batches, 0))
    bound.memory = std::max(bound.memory, m.total());
  const double passes = batch.micro_batches + static_cast<double>(cut.pipeline - 1) / cut.chunks;
  bound.time = passes * least_seconds(q, setting, c) / c.fastest_device();
  return bound;
}

double memory_for(const step_question& q, const cluster& c) {
  if (q.reserve >= c.device.memory) {
    throw infeasible(
        asked("reserve"), to_string(q.reserve),
        fmt::format("{} has {}; feasible: less", c.device.name, to_string(c.device.memory)));
  }
  return static_cast<double>((c.device.memory - q.reserve).value());
}

layer_answer layer_of(const step_question& q, const cluster& c, const transformer& t,
                      known_parts& known, layer_runner by) {
  const auto cut = degrees_of(q, ranks_of(q.base, c));
  check_model(q, cut, t);
  auto setting = setting_of(q, cut, t);
  setting.copies_values = by == layer_runner::executor;
  auto attended = attention_of(q, cut, t, known);
  double products = 1;
  if (by == layer_runner::executor) {
    settle_as_products(attended.mean, q, c);
  } else {
    products = settle_clocks(attended.mean, setting, q, c, known);
  }
  const bool sharded = sharding_of(q) == sharding::parameters;
  const step_costs costs(c, setting, sharding_of(q), attended.mean, known, products);
  layer_answer a{.setting = setting,
                 .shard = sharding_of(q),
                 .attention = *attended.full,
                 .forward = costs.layers(pass_kind::forward, {.others = 1}, {.gathers = sharded}),
                 .backward = costs.layers(pass_kind::backward, {.others = 1},
                                          {.gathers = sharded, .reduces = sharded})};
  if (by == layer_runner::executor) {
    a.backward = a.backward + costs.norm_gradient_sums();
    start_from_idle(a, c.device.matmul);
  }
  const auto both = a.forward + a.backward;
  const auto [below, above] = doubts_of(both, a.attention, c);
  a.time = seconds(sum_of(both));
  a.low = a.time - below;
  a.high = a.time + above;
  return a;
}

double attention_seconds(const step_question& q, const transformer& t, known_parts& known) {
  const degrees cut{.tensor = static_cast<int>(q.tensor.value_or(1)),
                    .context = static_cast<int>(q.context.value_or(1))};
  const auto mean = attention_of(q, cut, t, known).mean;
  return mean.time[0] + mean.time[1];
}

step_answer answer(const step_question& q, const cluster& c, const transformer& t,
                   known_parts& known, step_detail detail) {
  if (!q.base.sequence) throw input_error(asked("seq"), "is required");
  const auto cut = degrees_of(q, ranks_of(q.base, c));
  check_model(q, cut, t);
  const auto batch = batch_of(q, cut);
  const auto setting = setting_of(q, cut, t);
  auto attended = attention_of(q, cut, t, known);
  const double products = settle_clocks(attended.mean, setting, q, c, known);
  step_answer a{.cluster = c.name,
                .model = t.name,
                .task = q.task,
                .dtype = q.dtype,
                .cut = cut,
                .shard = sharding_of(q),
                .recompute = setting.recomputed,
                .sequence = *q.base.sequence,
                .prefix = q.base.prefix,
                .global_batch = batch.global,
                .micro_batch = q.sequences(),
                .micro_batches = batch.micro_batches,
                .attention = *attended.full};
  const step_costs costs(c, setting, sharding_of(q), attended.mean, known, products);
  const step_run run(costs, setting, q.task, sharding_of(q), batch.micro_batches, q.sequences());
  use_memory(a, memory_by_rank(q, run, setting, batch.micro_batches, attended.buffers),
             memory_for(q, c), c);
  use_time(a, run, t, c, detail);
  use_interval(a, c);
  add_warnings(a, c);
  return a;
}

step_answer answer(const step_question& q, const cluster& c, known_parts& known,
                   step_detail detail) {
  if (q.model.empty()) throw input_error(asked("model"), "is required");
  return answer(q, c, read_transformer(q.model), known, detail);
}

step_answer answer(const step_question& q, const cluster& c) {
  known_parts known(c);
  return answer(q, c, known);
}

}  // namespace attnsim::ask
