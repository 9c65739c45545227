#include "validate/layer/layer_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "kernels/with_type.hpp"
#include "model/error.hpp"
#include "validate/layer/layer_memory.hpp"
#include "validate/layer/reference_layer.hpp"
#include "validate/layer/replica.hpp"
#include "validate/shard.hpp"
#include "validate/start.hpp"

namespace attnsim::validate {
namespace {

using kernels::stream_id;

void require_runnable(const layer_setting& s) {
  const auto refuse = [&](bool lacks, const std::string& field, const std::string& value,
                          const std::string& expected) {
    if (lacks) throw infeasible(asked(field), value, expected);
  };
  const auto& m = s.model;
  refuse(m.latent > 0 || !m.gated || m.limited_layers > 0 || m.shared_intermediate > 0, "model",
         m.name,
         "a layer of it cannot be run; feasible: layers with a gated MLP or experts, none of them "
         "shared, and heads of their own that see all tokens, such as llama3-8b or mixtral-8x7b");
  refuse(m.experts > 0 && s.expert_skew != 1, "expert-skew", fmt::format("{}", s.expert_skew),
         "a layer with it cannot be run; feasible: 1");
  refuse(s.linear == product_type::fp8, "dtype", "fp8-linear",
         "a layer in it cannot be run; feasible: bf16");
  refuse(s.overlaps_tensor, "tp-overlap", "true", "a layer with it cannot be run; feasible: false");
  refuse(s.cut.pipeline > 1, "pp", std::to_string(s.cut.pipeline),
         "one layer has no stages; feasible: 1");
  const auto cut_widths = {std::int64_t{m.shape.heads}, m.shape.kv_heads,
                           m.experts > 0 ? std::int64_t{s.cut.tensor} : m.intermediate};
  for (const auto width : cut_widths) {
    refuse(width % s.cut.tensor != 0, "tp", std::to_string(s.cut.tensor),
           fmt::format("feasible: divisors of the heads, {} and {}, and of the MLP's {}",
                       m.shape.heads, m.shape.kv_heads, m.intermediate));
  }
  refuse(!s.fused, "eager", "true", "a layer's elementwise operations are fused; feasible: false");
}

layer_setting with_copied_values(layer_setting s) {
  s.copies_values = true;
  return s;
}

/// An operand of a product.
struct factor {
  area matrix;
  bool transposed = false;
};

std::vector<std::int64_t> positions_in(const token_set& tokens) {
  std::vector<std::int64_t> all;
  for (const auto& range : tokens) {
    for (std::int64_t i = 0; i < range.count; ++i) all.push_back(range.first + i * range.stride);
  }
  return all;
}

/// Positions in fp64.
std::vector<float> angles_of(const std::vector<std::int64_t>& positions, std::int64_t head_dim) {
  std::vector<float> all;
  for (const auto position : positions) {
    const auto angle = [&](std::int64_t d) {
      return static_cast<double>(position) *
             std::pow(rotary_base, -2.0 * static_cast<double>(d) / static_cast<double>(head_dim));
    };
    for (std::int64_t d = 0; d < head_dim / 2; ++d)
      all.push_back(static_cast<float>(std::cos(angle(d))));
    for (std::int64_t d = 0; d < head_dim / 2; ++d)
      all.push_back(static_cast<float>(std::sin(angle(d))));
  }
  return all;
}

std::vector<int> group_of(const degrees& cut, rank_group over, int rank) {
  for (const auto& group : groups_of(cut, over, cut.ranks())) {
    if (std::find(group.begin(), group.end(), rank) != group.end()) return group;
  }
  return {rank};
}

std::int64_t whole(double x) {
  return std::llround(x);
}

/// Where a rank's tokens go. Experts are dealt out to the tokens in turn, as a benchmark's router does that must balance: the j-th of
/// the token at place i of its sequences' [token][batch] is i active + j, counted round.
struct dealt_experts {
  std::vector<std::int32_t> places, chosen;
};

/// `rows`: places of the rank's tokens. Throws infeasible unless all experts get as many.
dealt_experts deal(const std::vector<std::int64_t>& rows, const transformer& m) {
  const auto each = static_cast<std::int64_t>(rows.size()) * m.active_experts / m.experts;
  std::vector<std::int64_t> had(static_cast<std::size_t>(m.experts));
  dealt_experts dealt;
  for (const auto row : rows) {
    for (int j = 0; j < m.active_experts; ++j) {
      const auto expert = (row * m.active_experts + j) % m.experts;
      dealt.chosen.push_back(static_cast<std::int32_t>(expert));
      dealt.places.push_back(
          static_cast<std::int32_t>(expert * each + had[static_cast<std::size_t>(expert)]++));
    }
  }
  for (const auto count : had) {
    if (count != each)
      throw infeasible(asked("seq"), std::to_string(rows.size()),
                       fmt::format("a rank's tokens are not dealt out evenly to {} experts, {} a "
                                   "token; feasible: more tokens, contiguous ones",
                                   m.experts, m.active_experts));
  }
  return dealt;
}

}  // namespace

layer_plan::layer_plan(const cluster& on, const layer_setting& s, bool shards, const attention& a,
                       const strategy& chosen)
    : setting(with_copied_values(s)),
      shards_parameters(shards),
      forward_attention(on, a, chosen, pass_kind::forward),
      backward_attention(on, a, chosen, pass_kind::backward),
      forward(forward_operations(setting)),
      backward(backward_operations(setting)) {
  require_runnable(s);
  const auto norms = norm_gradient_sums(s);
  backward.insert(backward.end(), norms.begin(), norms.end());
  if (!shards_parameters) return;
  if (s.model.experts > 0)
    throw infeasible(asked("shard"), "parameters",
                     "a layer with experts cannot be run with it; feasible: none");
  const auto gathers = parameter_gathers(s, 2);
  forward.insert(forward.begin(), gathers.begin(), gathers.end());
  backward.insert(backward.begin(), gathers.begin(), gathers.end());
  for (const auto& list : {gradient_casts(s), gradient_sums(s, collective_kind::reduce_scatter)})
    backward.insert(backward.end(), list.begin(), list.end());
  const auto count = parameter_layout(s).elements();
  if (count % s.cut.replicas() != 0)
    throw infeasible(asked("dp"), std::to_string(s.cut.data),
                     fmt::format("{} parameters are not a multiple of the {} ranks that share them",
                                 count, s.cut.replicas()));
}

/// What an operation of a name does, in the order in which operations of that name come.
class layer_executor::state {
 public:
  state(const layer_plan& plan, transport& t, kernels::backend& device)
      : plan_(plan),
        transport_(t),
        replica_(t, plan.setting.cut.tensor * plan.setting.cut.context),
        device_(device),
        clock_offset_(t.clock_offset()),
        stream_(device.create_stream()),
        layout_(plan.setting),
        memory_(plan, device),
        forward_executor_(plan.forward_attention.work(), replica_, device),
        backward_executor_(plan.backward_attention.work(), replica_, device),
        forward_attention_(forward_executor_),
        backward_attention_(backward_executor_, &forward_attention_) {
    open_channels();
    load(memory_.angles, angles_of(positions(), setting().model.shape.head_dim));
    if (has_experts()) load_places();
  }

  ~state() {
    try {
      device_.synchronize(stream_);
    } catch (...) {  // what the run failed of is on its way already
    }
  }

  // --- Sizes ----------------------------------------------------------------------------------------

  const layer_setting& setting() const { return plan_.setting; }
  int tensor_rank() const { return transport_.rank() % setting().cut.tensor; }
  int data_rank() const { return transport_.rank() / replica_.ranks(); }
  std::vector<std::int64_t> positions() const { return positions_in(forward_attention_.tokens()); }
  std::int64_t tokens() const { return setting().tokens; }
  std::int64_t rows() const { return tokens() / setting().cut.tensor; }
  std::int64_t hidden() const { return setting().model.hidden; }
  bool has_experts() const { return setting().model.experts > 0; }
  /// Of the MLP, or of an expert.
  std::int64_t inner() const {
    return has_experts() ? setting().model.expert_intermediate
                         : setting().model.intermediate / setting().cut.tensor;
  }
  std::int64_t mlp_rows() const {
    return has_experts() ? rows() * setting().model.active_experts : tokens();
  }

  const layer_memory& memory() const { return memory_; }

  // --- What is loaded and read ----------------------------------------------------------------------

  void load(const area& to, const std::vector<float>& values) {
    if (static_cast<std::int64_t>(values.size()) != to.elements)
      throw std::invalid_argument(
          fmt::format("{} elements, expected {}", values.size(), to.elements));
    kernels::with_type(to.type, [&]<typename T>(std::type_identity<T>) {
      std::vector<T> rounded;
      for (const float x : values) rounded.push_back(T(x));
      copy_now(to.data, rounded.data(), to.bytes());
    });
  }

  std::vector<float> read(const area& from) {
    std::vector<float> values;
    kernels::with_type(from.type, [&]<typename T>(std::type_identity<T>) {
      std::vector<T> data(static_cast<std::size_t>(from.elements));
      copy_now(data.data(), from.data, from.bytes());
      values.assign(data.begin(), data.end());
    });
    return values;
  }

  void load_random() {
    const auto small = 1 / std::sqrt(static_cast<float>(hidden()));
    fill_random(memory_.kept_parameters, small);
    for (const auto* one : {&memory_.residual, &memory_.branch, &memory_.output_gradient})
      fill_random(*one, 1);
  }

  /// The same million numbers again and again.
  void fill_random(const area& to, float largest) {
    constexpr std::int64_t count = 1 << 20;
    std::mt19937 random(static_cast<unsigned>(transport_.rank()));
    std::uniform_real_distribution<float> number(-largest, largest);
    kernels::with_type(to.type, [&]<typename T>(std::type_identity<T>) {
      std::vector<T> block;
      for (std::int64_t i = 0; i < count; ++i) block.push_back(T(number(random)));
      for (std::int64_t first = 0; first < to.elements; first += count) {
        const auto part = to.part(first, std::min(count, to.elements - first));
        device_.copy(stream_, part.data, block.data(), part.bytes());
      }
      device_.synchronize(stream_);
    });
  }

  // --- A pass ---------------------------------------------------------------------------------------

  layer_pass_times run(pass_kind pass) {
    bind(pass);
    if (pass == pass_kind::backward) {
      clear_gradients();
      forget_recomputed();
    }
    device_.synchronize(stream_);
    const double late = start_together(transport_, clock_offset_);
    const auto& list = pass == pass_kind::forward ? plan_.forward : plan_.backward;
    std::vector<kernels::event_id> marks{device_.record(stream_)};
    for (const auto& op : list) {
      perform(op);
      marks.push_back(device_.record(stream_));
    }
    device_.synchronize(stream_);
    layer_pass_times times;
    for (std::size_t i = 0; i + 1 < marks.size(); ++i)
      times.spans.emplace_back(device_.seconds_between(marks[i], marks[i + 1]));
    times.end = seconds(late + device_.seconds_between(marks.front(), marks.back()));
    for (const auto mark : marks) device_.release(mark);
    require_all_performed();
    if (pass == pass_kind::backward && !plan_.shards_parameters) widen_written();
    return times;
  }

 private:
  using action = std::function<void(const layer_operation&)>;

  void open_channels() {
    for (const auto over : {rank_group::tensor, rank_group::replicas, rank_group::expert}) {
      const auto group = group_of(setting().cut, over, transport_.rank());
      if (group.size() > 1) channels_[over] = transport_.open(device_, stream_, group);
    }
  }

  void load_places() {
    const auto batch = plan_.forward_attention.work().problem().batch;
    const auto all = positions();
    std::vector<std::int64_t> places;
    for (auto row = tensor_rank() * rows(); row < (tensor_rank() + 1) * rows(); ++row)
      places.push_back(all[static_cast<std::size_t>(row / batch)] * batch + row % batch);
    const auto dealt = deal(places, setting().model);
    copy_now(memory_.places.data, dealt.places.data(), memory_.places.bytes());
    copy_now(memory_.chosen.data, dealt.chosen.data(), memory_.chosen.bytes());
  }

  area parameter_of(parameter p) const { return part_of(memory_.parameters, p); }
  area part_of(const area& all, parameter p) const {
    return all.part(layout_.of(p).first, layout_.of(p).elements());
  }
  area written_gradient(parameter p) const {
    return part_of(memory_.written_gradients.data ? memory_.written_gradients : memory_.gradients,
                   p);
  }

  // --- What operations do ---------------------------------------------------------------------------

  void bind(pass_kind pass) {
    actions_.clear();
    if (pass == pass_kind::backward) {
      if (setting().recomputed == recomputation::full) bind_forward();
      if (setting().recomputed == recomputation::selective) bind_recomputed();
      bind_backward();
    } else {
      bind_forward();
    }
    actions_["gather of parameters"].push_back(
        [this](const auto& op) { exchange(op, memory_.kept_parameters, memory_.parameters); });
    if (pass == pass_kind::forward) return;
    on("sum of norms' gradients", [this](const auto& op) { add_up_norms(op); });
    on("sum of gradients",
       [this](const auto& op) { exchange(op, memory_.gradients, memory_.kept_gradients); });
    if (plan_.shards_parameters && !setting().adds_gradients)
      on("gradients to fp32", [this](const auto&) { widen_written(); });
  }

  template <typename Action>
  void on(std::string_view name, Action what) {
    actions_[name].push_back(std::move(what));
  }

  void perform(const layer_operation& op) {
    auto& waiting = actions_[op.name];
    if (waiting.empty())
      throw std::logic_error(fmt::format("a layer's operation without an action: {}", op.name));
    const auto what = std::move(waiting.front());
    waiting.pop_front();
    what(op);
  }

  /// But collectives, which lists lack where a group has one member.
  void require_all_performed() const {
    for (const auto& [name, waiting] : actions_) {
      if (!waiting.empty() && name.find("gather") == std::string_view::npos &&
          name.find("sum") == std::string_view::npos && !name.starts_with("tokens "))
        throw std::logic_error(fmt::format("a layer's list lacks an operation: {}", name));
    }
  }

  bool is_cut() const { return setting().cut.tensor > 1; }
  /// All tokens of what each rank has a part of.
  area all(const area& local, const area& gathered) const { return is_cut() ? gathered : local; }

  void bind_forward() {
    const auto parts = [this](const area& sum) { return is_cut() ? memory_.parts : sum; };
    bind_norm(0, memory_.residual, memory_.branch, parameter::attention_norm);
    bind_gather(memory_.normed[0], memory_.gathered);
    bind_product("projections", all(memory_.normed[0], memory_.gathered), parameter::projections,
                 memory_.projected);
    on("rotation", [this](const auto&) { rotate(); });
    on("values", [this](const auto&) { bring_values(); });
    on("attention", [this](const auto&) { forward_attention_.enqueue(stream_); });
    bind_product("output", attended(), parameter::output, parts(memory_.attention_output));
    bind_scatter(memory_.attention_output);
    bind_norm(1, memory_.sum[0], memory_.attention_output, parameter::mlp_norm);
    if (has_experts()) return bind_experts();
    bind_gather(memory_.normed[1], memory_.gathered);
    bind_product("MLP up", all(memory_.normed[1], memory_.gathered), parameter::up, memory_.up);
    bind_gate();
    bind_product("MLP down", memory_.inner, parameter::down, parts(memory_.mlp_output));
    bind_scatter(memory_.mlp_output);
  }

  void bind_experts() {
    bind_product("router", memory_.normed[1], parameter::router, memory_.logits);
    on("order of tokens", [this](const auto&) {
      device_.order_tokens(stream_, {.at = expert_places(),
                                     .width = hidden(),
                                     .type = plan_.type(),
                                     .tokens = memory_.normed[1].data,
                                     .ordered = memory_.ordered.data});
    });
    bind_travel("tokens to experts", memory_.ordered, memory_.received);
    bind_experts_product("experts up", memory_.received, parameter::experts_up, memory_.up);
    bind_gate();
    bind_experts_product("experts down", memory_.inner, parameter::experts_down, memory_.put_out);
    bind_travel("tokens from experts", memory_.put_out, memory_.returned);
    bind_sum_of_experts("sum of experts", memory_.logits.data, memory_.returned,
                        memory_.mlp_output);
  }

  void bind_experts_backward() {
    on("sum of experts", [this](const auto&) {
      device_.sum_experts_gradient(stream_, {.at = expert_places(),
                                             .width = hidden(),
                                             .type = plan_.type(),
                                             .logits = memory_.logits.data,
                                             .ordered = memory_.returned.data,
                                             .result_gradient = memory_.output_gradient.data,
                                             .ordered_gradient = memory_.ordered_gradient.data,
                                             .logits_gradient = memory_.logits_gradient.data});
    });
    bind_travel("tokens to experts", memory_.ordered_gradient, memory_.received_gradient);
    bind_experts_gradients("experts down", memory_.received_gradient, parameter::experts_down,
                           memory_.inner, memory_.inner_gradient);
    bind_gate_gradient();
    bind_experts_gradients("experts up", memory_.up_gradient, parameter::experts_up,
                           memory_.received, memory_.received_gradient);
    bind_travel("tokens from experts", memory_.received_gradient, memory_.ordered_gradient);
    bind_sum_of_experts("order of tokens", nullptr, memory_.ordered_gradient,
                        memory_.normed_gradient);
    bind_gradients("router", memory_.logits_gradient, parameter::router, memory_.normed[1],
                   memory_.normed_gradient, true);
  }

  /// Keys, the output and what a gate multiplies; queries, values, attention's result and the gate's are kept.
  void bind_recomputed() {
    const auto& shape = setting().model.shape;
    const auto ranks = setting().cut.tensor;
    const auto query = shape.heads * shape.head_dim / ranks,
               key = shape.kv_heads * shape.head_dim / ranks;
    bind_norm(0, memory_.residual, memory_.branch, parameter::attention_norm);
    bind_gather(memory_.normed[0], memory_.gathered);
    bind_part("projections", all(memory_.normed[0], memory_.gathered), parameter::projections,
              memory_.projected, {.first = query, .count = key, .of = memory_.projected_width});
    on("rotation", [this](const auto&) { rotate(); });
    bind_product("output", attended(), parameter::output,
                 is_cut() ? memory_.parts : memory_.attention_output);
    bind_scatter(memory_.attention_output);
    bind_norm(1, memory_.sum[0], memory_.attention_output, parameter::mlp_norm);
    if (has_experts()) return bind_experts();
    bind_gather(memory_.normed[1], memory_.gathered);
    bind_part("MLP up", all(memory_.normed[1], memory_.gathered), parameter::up, memory_.up,
              {.first = inner(), .count = inner(), .of = 2 * inner()});
    bind_gate();
  }

  void bind_backward() {
    const auto parts = is_cut() ? memory_.parts : memory_.normed_gradient;
    has_experts() ? bind_experts_backward() : bind_mlp_backward(parts);
    bind_norm_gradient(1, memory_.output_gradient, parameter::mlp_norm, memory_.sum_gradient);

    bind_gather(memory_.sum_gradient, memory_.gathered_gradient);
    bind_gradients("output", all(memory_.sum_gradient, memory_.gathered_gradient),
                   parameter::output, attended(), attended_gradient());
    on("attention", [this](const auto&) { backward_attention_.enqueue(stream_); });
    on("rotation", [this](const auto&) { rotate_back(); });
    on("values", [this](const auto&) { take_value_gradients(); });
    bind_gather(memory_.normed[0], memory_.gathered);
    bind_gradients("projections", memory_.projected_gradient, parameter::projections,
                   all(memory_.normed[0], memory_.gathered), parts);
    bind_scatter(memory_.normed_gradient);
    bind_norm_gradient(0, memory_.sum_gradient, parameter::attention_norm, memory_.input_gradient);
  }

  void bind_mlp_backward(const area& parts) {
    bind_gather(memory_.output_gradient, memory_.gathered_gradient);
    bind_gradients("MLP down", all(memory_.output_gradient, memory_.gathered_gradient),
                   parameter::down, memory_.inner, memory_.inner_gradient);
    bind_gate_gradient();
    bind_gather(memory_.normed[1], memory_.gathered);
    bind_gradients("MLP up", memory_.up_gradient, parameter::up,
                   all(memory_.normed[1], memory_.gathered), parts);
    bind_scatter(memory_.normed_gradient);
  }

  void bind_gate_gradient() {
    on("activation", [this](const auto&) {
      device_.gate_gradient(stream_, {.rows = mlp_rows(),
                                      .width = inner(),
                                      .type = plan_.type(),
                                      .inputs = memory_.up.data,
                                      .result_gradient = memory_.inner_gradient.data,
                                      .input_gradient = memory_.up_gradient.data});
    });
  }

  void bind_gate() {
    on("activation", [this](const auto&) {
      device_.gate(stream_, {.rows = mlp_rows(),
                             .width = inner(),
                             .type = plan_.type(),
                             .inputs = memory_.up.data,
                             .result = memory_.inner.data});
    });
  }

  void bind_gather(const area& local, const area& all) {
    on("gather of tokens", [=, this](const auto& op) { exchange(op, local, all); });
  }
  void bind_travel(std::string_view name, const area& from, const area& to) {
    on(name, [=, this](const auto& op) { exchange(op, from, to); });
  }
  void bind_scatter(const area& local) {
    on("sum of parts", [=, this](const auto& op) { exchange(op, memory_.parts, local); });
  }

  void bind_norm(int which, const area& residual, const area& branch, parameter weight) {
    on("norm", [=, this](const auto&) {
      device_.norm(stream_, {.rows = rows(),
                             .width = hidden(),
                             .type = plan_.type(),
                             .residual = residual.data,
                             .branch = branch.data,
                             .weight = parameter_of(weight).data,
                             .sum = memory_.sum[which].data,
                             .result = memory_.normed[which].data,
                             .scale = single(memory_.scale[which])});
    });
  }

  void bind_norm_gradient(int which, const area& residual_gradient, parameter weight,
                          const area& to) {
    on("norm", [=, this](const auto&) {
      device_.norm_gradient(stream_,
                            {.rows = rows(),
                             .width = hidden(),
                             .type = plan_.type(),
                             .sum = memory_.sum[which].data,
                             .scale = single(memory_.scale[which]),
                             .weight = parameter_of(weight).data,
                             .result_gradient = memory_.normed_gradient.data,
                             .residual_gradient = residual_gradient.data,
                             .sum_gradient = to.data,
                             .weight_gradient = single(part_of(memory_.gradients, weight))});
    });
  }

  void bind_product(std::string_view name, const area& input, parameter p, const area& result) {
    on(name, [=, this](const auto& op) {
      multiply(op, {input}, {parameter_of(p), true}, result, false);
    });
  }

  /// Some of the outputs of a product, where they lie among all.
  struct outputs {
    std::int64_t first = 0, count = 0, of = 0;
  };
  void bind_part(std::string_view name, const area& input, parameter p, const area& result,
                 const outputs& some) {
    on(name, [=, this](const auto& op) {
      const auto weights = parameter_of(p);
      const auto width = weights.elements / some.of;
      multiply(op, {input}, {weights.part(some.first * width, some.count * width), true},
               result.part(some.first, result.elements - some.first), false, some.of);
    });
  }

  /// Of a product's input, which may be added to what is there, and of its parameters.
  void bind_gradients(std::string_view name, const area& gradient, parameter p, const area& input,
                      const area& input_gradient, bool adds_input = false) {
    on(name, [=, this](const auto& op) {
      multiply(op, {gradient}, {parameter_of(p)}, input_gradient, adds_input);
    });
    on(name, [=, this](const auto& op) {
      const bool once = !setting().adds_gradients;
      multiply(op, {gradient, true}, {input},
               once ? written_gradient(p) : part_of(memory_.gradients, p), !once);
    });
  }

  // --- Experts --------------------------------------------------------------------------------------

  kernels::expert_places expert_places() const {
    const auto at = [](const area& list) {
      return reinterpret_cast<const std::int32_t*>(list.data);
    };
    return {.rows = rows(),
            .active = setting().model.active_experts,
            .experts = setting().model.experts,
            .places = at(memory_.places),
            .chosen = at(memory_.chosen)};
  }

  void bind_sum_of_experts(std::string_view name, const void* logits, const area& ordered,
                           const area& result) {
    on(name, [=, this](const auto&) {
      device_.sum_experts(stream_, {.at = expert_places(),
                                    .width = hidden(),
                                    .type = plan_.type(),
                                    .logits = logits,
                                    .ordered = ordered.data,
                                    .result = result.data});
    });
  }

  /// Calls each(the rank's expert, first row, rows, whether the expert had rows before) for the tokens of every rank that go to it.
  /// They lie by the rank that they come from, then by expert.
  template <typename Each>
  void for_each_expert(const layer_operation& op, std::int64_t rows_of_one, const Each& each) {
    const auto sources = std::int64_t{setting().cut.expert},
               experts = setting().model.experts / sources, chunk = rows_of_one / sources;
    if (whole(op.product.count) != experts || rows_of_one * experts != mlp_rows())
      throw std::logic_error(fmt::format("{}: {} x {} rows are not of {} experts", op.name,
                                         op.product.count, rows_of_one, experts));
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      for (std::int64_t from = 0; from < sources; ++from)
        each(expert, (from * experts + expert) * chunk, chunk, from > 0);
    }
  }

  static area rows_of(const area& matrix, std::int64_t first, std::int64_t count,
                      std::int64_t width) {
    return matrix.part(first * width, count * width);
  }

  void bind_experts_product(std::string_view name, const area& input, parameter p,
                            const area& result) {
    on(name, [=, this](const auto& op) {
      const auto cols = whole(op.product.cols), inner = whole(op.product.inner);
      for_each_expert(op, whole(op.product.rows), [&](auto expert, auto first, auto rows, bool) {
        multiply(op.name, {rows, cols, inner}, {rows_of(input, first, rows, inner)},
                 {rows_of(parameter_of(p), expert * cols, cols, inner), true},
                 rows_of(result, first, rows, cols), false);
      });
    });
  }

  void bind_experts_gradients(std::string_view name, const area& gradient, parameter p,
                              const area& input, const area& input_gradient) {
    on(name, [=, this](const auto& op) {
      const auto cols = whole(op.product.cols), inner = whole(op.product.inner);
      for_each_expert(op, whole(op.product.rows), [&](auto expert, auto first, auto rows, bool) {
        multiply(op.name, {rows, cols, inner}, {rows_of(gradient, first, rows, inner)},
                 {rows_of(parameter_of(p), expert * inner, inner, cols)},
                 rows_of(input_gradient, first, rows, cols), false);
      });
    });
    on(name, [=, this](const auto& op) {
      const bool adds = setting().adds_gradients;
      const auto outputs = whole(op.product.rows), width = whole(op.product.cols);
      const auto all = adds ? part_of(memory_.gradients, p) : written_gradient(p);
      for_each_expert(op, whole(op.product.inner),
                      [&](auto expert, auto first, auto rows, bool later) {
                        multiply(op.name, {outputs, width, rows},
                                 {rows_of(gradient, first, rows, outputs), true},
                                 {rows_of(input, first, rows, width)},
                                 rows_of(all, expert * outputs, outputs, width), adds || later);
                      });
    });
  }

  // --- Products and exchanges -----------------------------------------------------------------------

  struct product_sizes {
    std::int64_t rows, cols, inner;
  };

  /// `stride`: of the result's rows where they lie apart, in an area that ends with another's.
  void multiply(const layer_operation& op, const factor& left, const factor& right,
                const area& result, bool adds, std::int64_t stride = 0) {
    multiply(op.name, {whole(op.product.rows), whole(op.product.cols), whole(op.product.inner)},
             left, right, result, adds, stride);
  }

  void multiply(std::string_view name, const product_sizes& sizes, const factor& left,
                const factor& right, const area& result, bool adds, std::int64_t stride = 0) {
    const kernels::product_arguments a{.rows = sizes.rows,
                                       .cols = sizes.cols,
                                       .inner = sizes.inner,
                                       .type = left.matrix.type,
                                       .left = left.matrix.data,
                                       .left_transposed = left.transposed,
                                       .right = right.matrix.data,
                                       .right_transposed = right.transposed,
                                       .result_type = result.type,
                                       .result = result.data,
                                       .result_stride = stride,
                                       .adds = adds};
    const auto written = stride > 0 ? (a.rows - 1) * stride + a.cols : a.rows * a.cols;
    if (a.rows * a.inner != left.matrix.elements || a.inner * a.cols != right.matrix.elements ||
        (stride > 0 ? written > result.elements : written != result.elements))
      throw std::logic_error(
          fmt::format("{}: {} x {} x {} is not of its operands", name, a.rows, a.cols, a.inner));
    device_.product(stream_, a);
  }

  /// The list counts two bytes an element, but four of gradients' sums.
  void exchange(const layer_operation& op, const area& from, const area& to) {
    auto& through = *channels_.at(op.over);
    const bool gathers = op.moves == collective_kind::all_gather;
    const auto elements = (gathers ? to : from).elements;
    if (whole(op.bytes) != (from.data == memory_.gradients.data ? 4 : 2) * elements)
      throw std::logic_error(
          fmt::format("{}: {} bytes are not of {} elements", op.name, op.bytes, elements));
    const bool deals = op.moves == collective_kind::all_to_all;
    const auto members = static_cast<std::size_t>(deals ? size_of(setting().cut, op.over) : 1);
    const payload data[] = {{.from = from.data,
                             .to = to.data,
                             .slot_bytes = (gathers ? from : to).bytes() / members,
                             .type = from.type}};
    const std::string what(op.name);
    if (deals) return through.all_to_all(what, data);
    gathers ? through.all_gather(what, data) : through.reduce_scatter(what, data);
  }

  /// Both norms' lie side by side.
  void add_up_norms(const layer_operation& op) {
    const auto first = part_of(memory_.gradients, parameter::attention_norm);
    const area both{first.data, 2 * first.elements, first.type};
    if (whole(op.bytes) != static_cast<std::int64_t>(both.bytes()))
      throw std::logic_error(
          fmt::format("{}: {} bytes are not of {} elements", op.name, op.bytes, both.elements));
    const payload data[] = {
        {.from = both.data, .to = both.data, .slot_bytes = both.bytes(), .type = both.type}};
    channels_.at(op.over)->all_reduce(std::string(op.name), data);
  }

  void widen_written() {
    if (!memory_.written_gradients.data) return;
    for (const auto p : all_parameters) {
      if (!is_norm(p) && layout_.of(p).elements() > 0)
        widen(part_of(memory_.written_gradients, p), part_of(memory_.gradients, p));
    }
  }

  void widen(const area& from, const area& to) {
    const kernels::token_shape shape{1, from.elements / hidden(), 1, hidden()};
    device_.cast(stream_, shape, kernels::dense(to.data, to.type, shape),
                 kernels::dense(from.data, from.type, shape));
  }

  void clear_gradients() {
    const kernels::token_shape shape{1, memory_.gradients.elements / hidden(), 1, hidden()};
    device_.fill(stream_, shape,
                 kernels::dense(memory_.gradients.data, memory_.gradients.type, shape), 0);
  }

  /// Backward must not find what it computes again.
  void forget_recomputed() {
    if (setting().recomputed == recomputation::none) return;
    const bool all = setting().recomputed == recomputation::full;
    for (const auto* one :
         {&memory_.normed[0], &memory_.normed[1], &memory_.sum[0], &memory_.sum[1],
          &memory_.scale[0], &memory_.scale[1], &memory_.attention_output, &memory_.inner})
      forget(*one, one->elements);
    const auto keys = forward_attention_.shape(tensor::k);
    const auto first = memory_.projected_width - 2 * keys.heads * keys.head_dim;
    const auto projected = memory_.projected, up = memory_.up;
    all ? forget(projected, projected.elements)
        : forget(projected.part(first, projected.elements - first), keys.heads * keys.head_dim,
                 memory_.projected_width);
    all || has_experts() ? forget(up, up.elements)
                         : forget(up.part(inner(), up.elements - inner()), inner(), 2 * inner());
    if (has_experts()) {
      for (const auto* one : {&memory_.logits, &memory_.ordered, &memory_.received,
                              &memory_.put_out, &memory_.returned})
        forget(*one, one->elements);
    }
    for (const auto what : {tensor::q, tensor::k, tensor::v, tensor::o}) {
      if (all || what == tensor::q || what == tensor::k)
        device_.fill(stream_, forward_attention_.shape(what), forward_attention_.at(what), nan);
    }
  }

  /// The first `width` elements of every `stride`.
  void forget(const area& a, std::int64_t width, std::int64_t stride = 0) {
    const auto rows = stride > 0 ? (a.elements + stride - width) / stride : 1;
    device_.fill(stream_, {1, rows, 1, width},
                 {a.type, {a.data, 0, stride > 0 ? stride : width, width}}, nan);
  }

  static constexpr float nan = std::numeric_limits<float>::quiet_NaN();

  // --- Around attention -----------------------------------------------------------------------------

  area area_of(const kernels::device_tensor& t, const kernels::token_shape& shape) const {
    return {static_cast<std::byte*>(t.view.data),
            shape.batch * shape.tokens * shape.heads * shape.head_dim, t.type};
  }
  area attended() const {
    return area_of(forward_attention_.at(tensor::o), forward_attention_.shape(tensor::o));
  }
  area attended_gradient() const {
    return area_of(backward_attention_.at(tensor::d_o), backward_attention_.shape(tensor::d_o));
  }

  /// Some heads of each row of projections.
  kernels::device_tensor among(const area& projected, const kernels::token_shape& s,
                               std::int64_t first) const {
    const auto data = projected.data + first * element_bytes(projected.type);
    return {projected.type,
            {data, memory_.projected_width, s.batch * memory_.projected_width, s.head_dim}};
  }

  /// Queries and keys to where attention reads them.
  void rotate() {
    std::int64_t first = 0;
    for (const auto what : {tensor::q, tensor::k}) {
      const auto shape = forward_attention_.shape(what);
      device_.rotate(stream_, shape, forward_attention_.at(what),
                     among(memory_.projected, shape, first), single(memory_.angles), false);
      first += shape.heads * shape.head_dim;
    }
  }

  void rotate_back() {
    std::int64_t first = 0;
    for (const auto what : {tensor::d_q, tensor::d_k}) {
      const auto shape = backward_attention_.shape(what);
      device_.rotate(stream_, shape, among(memory_.projected_gradient, shape, first),
                     backward_attention_.at(what), single(memory_.angles), true);
      first += shape.heads * shape.head_dim;
    }
  }

  /// Where values begin in a row of projections.
  std::int64_t first_value(const kernels::token_shape& values) const {
    return memory_.projected_width - values.heads * values.head_dim;
  }
  void bring_values() {
    const auto shape = forward_attention_.shape(tensor::v);
    device_.cast(stream_, shape, forward_attention_.at(tensor::v),
                 among(memory_.projected, shape, first_value(shape)));
  }
  void take_value_gradients() {
    const auto shape = backward_attention_.shape(tensor::d_v);
    device_.cast(stream_, shape, among(memory_.projected_gradient, shape, first_value(shape)),
                 backward_attention_.at(tensor::d_v));
  }

  static float* single(const area& a) { return reinterpret_cast<float*>(a.data); }

  void copy_now(void* to, const void* from, std::size_t bytes) {
    device_.copy(stream_, to, from, bytes);
    device_.synchronize(stream_);
  }

  const layer_plan& plan_;
  transport& transport_;
  replica replica_;
  kernels::backend& device_;
  double clock_offset_;
  stream_id stream_;
  parameter_layout layout_;
  layer_memory memory_;
  executor forward_executor_, backward_executor_;
  enqueued_pass forward_attention_, backward_attention_;
  std::map<rank_group, std::unique_ptr<channel>> channels_;
  std::map<std::string_view, std::deque<action>> actions_;
};

layer_executor::layer_executor(const layer_plan& plan, transport& t, kernels::backend& device)
    : state_(std::make_unique<state>(plan, t, device)) {}
layer_executor::~layer_executor() = default;

int layer_executor::tensor_rank() const {
  return state_->tensor_rank();
}
int layer_executor::data_rank() const {
  return state_->data_rank();
}
std::vector<std::int64_t> layer_executor::positions() const {
  return state_->positions();
}
std::int64_t layer_executor::first_row() const {
  return state_->tensor_rank() * state_->rows();
}
std::int64_t layer_executor::rows() const {
  return state_->rows();
}
std::int64_t layer_executor::elements(layer_tensor t) const {
  return state_->memory().of(t).elements;
}
void layer_executor::load(layer_tensor t, const std::vector<float>& values) {
  state_->load(state_->memory().of(t), values);
}
std::vector<float> layer_executor::read(layer_tensor t) const {
  return state_->read(state_->memory().of(t));
}
void layer_executor::load_random() {
  state_->load_random();
}
layer_pass_times layer_executor::forward() {
  return state_->run(pass_kind::forward);
}
layer_pass_times layer_executor::backward() {
  return state_->run(pass_kind::backward);
}

}  // namespace attnsim::validate
