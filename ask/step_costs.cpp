#include "ask/step_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/named.hpp"

namespace attnsim::ask {
namespace {

constexpr name_table<step_part, step_parts> part_names{{{step_part::products, "matmul"},
                                                        {step_part::attention, "attention"},
                                                        {step_part::elementwise, "elementwise"},
                                                        {step_part::tensor, "tensor_exchange"},
                                                        {step_part::expert, "expert_exchange"},
                                                        {step_part::data, "data_exchange"},
                                                        {step_part::bubble, "bubble"},
                                                        {step_part::optimizer, "optimizer"}}};

enum stream { compute_stream, exchange_stream, gather_stream, reduce_stream, attention_stream };

constexpr double half = 2, single = 4;  ///< bytes of a number
constexpr int pieces = 4;               ///< of collectives that run beside products

int kind_of(step_part part) {
  return static_cast<int>(part);
}

int pass_index(pass_kind pass) {
  return pass == pass_kind::backward ? 1 : 0;
}

int nodes_width(const cluster& c) {
  return std::max(1, c.devices_per_node);
}

}  // namespace

std::string_view name_of(step_part part) {
  return find_name(part_names, part);
}

step_part part_of(const layer_operation& op) {
  switch (op.work) {
    case layer_work::product:
      return step_part::products;
    case layer_work::attention:
      return step_part::attention;
    case layer_work::elementwise:
      return step_part::elementwise;
    case layer_work::collective:
      break;
  }
  if (op.over == rank_group::expert) return step_part::expert;
  return op.over == rank_group::tensor ? step_part::tensor : step_part::data;
}

part_times operator+(part_times a, const part_times& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
part_times operator*(double factor, part_times a) {
  for (auto& time : a) time *= factor;
  return a;
}
double sum_of(const part_times& parts) {
  double total = 0;
  for (const double time : parts) total += time;
  return total;
}

const prediction& known_parts::attention(const attnsim::attention& a, const strategy& s, int ranks,
                                         pass_kind pass, prediction_method by) {
  const auto key = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} | {} {} {} {} {} {} {} {} {} {} {} {} {} {} | {} {} {}",
      a.sequence, a.batch, a.heads, a.kv_heads, a.head_dim, a.v_head_dim, a.sinks, a.prefix,
      a.window, name_of(a.mask), name_of(a.dtype), s.schedule, s.rows, s.cols, s.ulysses,
      s.tensor_parallel, name_of(s.tokens), s.placement, s.kernel, name_of(s.order),
      name_of(s.reduction), name_of(s.merges), name_of(s.partials), name_of(s.gradients),
      name_of(s.launch), ranks, name_of(pass), name_of(by));
  const auto known = predictions_.find(key);
  if (known != predictions_.end()) return known->second;
  return predictions_.emplace(key, predict(a, s, ranks, pass, by, work_)).first->second;
}

/// Groups of the same members and as many stages on a node are the same.
const group_transfer& known_parts::transfer(collective_kind kind, const degrees& cut,
                                            rank_group group) {
  const std::vector<int> key{static_cast<int>(kind),
                             static_cast<int>(group),
                             size_of(cut, group),
                             cut.tensor,
                             cut.expert,
                             cut.stage_ranks(),
                             cut.pipeline};
  const auto [found, is_new] = transfers_.try_emplace(key);
  if (is_new && size_of(cut, group) > 1)
    found->second = transfer_in(work_.on(), kind, groups_of(cut, group, nodes_width(work_.on())));
  return found->second;
}

/// Operations of layers one after the other, laid out on streams.
class step_costs::program {
 public:
  program(const step_costs& costs, const layer_setting& s, double scale)
      : costs_(costs), setting_(s), scale_(scale) {}

  void add_layer(const std::vector<layer_operation>& list, beside data) {
    if (data.gathers) gather();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool reduced_in_pieces = i + 1 < list.size() && list[i + 1].in_pieces &&
                                     list[i + 1].moves != collective_kind::all_gather;
      if (list[i].work == layer_work::product && reduced_in_pieces) {
        add_reduced_product(list[i], list[i + 1]);
        ++i;
      } else if (list[i].work == layer_work::product && !gathered_.empty()) {
        add_gathered_product(list[i]);
      } else {
        add(list[i]);
      }
    }
    if (data.reduces) {
      for (const auto& op : gradient_casts(setting_)) add(op);
    }
    ends_.push_back(computed_);
    if (data.reduces) reduce();
  }

  part_times run() const {
    const auto run = run_alike(costs_.cluster_.device, operations_, step_parts);
    part_times parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = (run.busy[i] + run.waits[i]).value();
    return parts;
  }

 private:
  int push(device_operation op) {
    operations_.push_back(std::move(op));
    return static_cast<int>(operations_.size()) - 1;
  }

  void compute(step_part part, double time, std::vector<int> after = {}) {
    after.insert(after.end(), awaited_.begin(), awaited_.end());
    awaited_.clear();
    computed_ = push({.kind = kind_of(part), .work = seconds(time), .after = std::move(after)});
  }

  int move(step_part part, stream lane, const group_transfer& t, double bytes,
           std::vector<int> after) {
    return push({.kind = kind_of(part),
                 .stream = lane,
                 .transfer = &t,
                 .buffer_bytes = bytes,
                 .after = std::move(after)});
  }

  std::vector<int> after_computed() const {
    return computed_ < 0 ? std::vector<int>{} : std::vector<int>{computed_};
  }

  void add(const layer_operation& op) {
    if (op.work == layer_work::collective) return exchange(op);
    if (op.work == layer_work::attention) return attend(op.pass);
    compute(part_of(op), costs_.local(op));
  }

  void exchange(const layer_operation& op) {
    const auto& t = costs_.transfer(op.moves, op.over);
    const auto part = part_of(op);
    if (!op.in_pieces || op.moves != collective_kind::all_gather) {
      awaited_.push_back(move(part, exchange_stream, t, op.bytes, after_computed()));
      return;
    }
    for (int i = 0; i < pieces; ++i)
      gathered_.push_back(move(part, exchange_stream, t, op.bytes / pieces, after_computed()));
  }

  layer_operation piece_of(layer_operation op) const {
    op.product.rows /= pieces;
    return op;
  }

  void add_gathered_product(const layer_operation& op) {
    for (const int there : std::exchange(gathered_, {}))
      compute(step_part::products, costs_.local(piece_of(op)), {there});
  }

  void add_reduced_product(const layer_operation& op, const layer_operation& sum) {
    const auto gathered = std::exchange(gathered_, {});
    for (std::size_t i = 0; i < pieces; ++i) {
      compute(step_part::products, costs_.local(piece_of(op)),
              gathered.empty() ? std::vector<int>{} : std::vector<int>{gathered[i]});
      const int sent = move(step_part::tensor, exchange_stream,
                            costs_.transfer(sum.moves, sum.over), sum.bytes / pieces, {computed_});
      if (i + 1 == pieces) awaited_.push_back(sent);
    }
  }

  /// With its traffic beside it, which others may slow down.
  void attend(pass_kind pass) {
    const auto index = static_cast<std::size_t>(pass_index(pass));
    const auto before = after_computed();
    compute(step_part::attention, scale_ * costs_.attention_.time[index]);
    if (!costs_.exchange_[index].moves()) return;
    const int traffic = push({.kind = kind_of(step_part::attention),
                              .stream = attention_stream,
                              .transfer = &costs_.exchange_[index],
                              .buffer_bytes = scale_ * costs_.attention_.sent_bytes[index],
                              .slows_kernels = false,
                              .after = before});
    awaited_.push_back(traffic);
  }

  /// While the layer before computes: FSDP's prefetch.
  void gather() {
    const std::size_t n = ends_.size();
    const std::vector<int> after = n < 2 ? std::vector<int>{} : std::vector<int>{ends_[n - 2]};
    const bool fp8 =
        costs_.sharding_ == sharding::parameters && setting_.linear == product_type::fp8;
    for (const auto& op : parameter_gathers(setting_, fp8 ? 1 : half))
      awaited_.push_back(move(step_part::data, gather_stream, costs_.transfer(op.moves, op.over),
                              op.bytes, after));
  }

  void reduce() {
    const auto kind = costs_.sharding_ == sharding::none ? collective_kind::all_reduce
                                                         : collective_kind::reduce_scatter;
    for (const auto& op : gradient_sums(setting_, kind))
      move(step_part::data, reduce_stream, costs_.transfer(op.moves, op.over), op.bytes,
           after_computed());
  }

  const step_costs& costs_;
  const layer_setting& setting_;
  double scale_;
  std::vector<device_operation> operations_;
  int computed_ = -1;          // the latest operation that computes
  std::vector<int> awaited_;   // what the next one waits for
  std::vector<int> gathered_;  // pieces that the next product waits for one by one
  std::vector<int> ends_;      // the last operation of each layer
};

step_costs::step_costs(const cluster& c, const layer_setting& s, sharding sharded,
                       const attention_cost& a, known_parts& known, double products)
    : cluster_(c),
      setting_(s),
      sharding_(sharded),
      attention_(a),
      known_(known),
      speed_(c.slowest_device()),
      products_(products) {
  if (s.cut.context < 2) return;
  const auto& ring = known.transfer(collective_kind::all_gather, s.cut, rank_group::context);
  for (int pass = 0; pass < 2; ++pass) {
    if (a.sent_bytes[pass] <= 0) continue;
    exchange_[pass] = ring;
    exchange_[pass].bytes_a_byte = 1;
    exchange_[pass].latency = {};
    exchange_[pass].least_seconds_a_byte = a.time[pass] / a.sent_bytes[pass];
  }
}

const group_transfer& step_costs::transfer(collective_kind kind, rank_group group) const {
  return known_.transfer(kind, setting_.cut, group);
}

double step_costs::local(const layer_operation& op) const {
  const auto& device = cluster_.device;
  if (op.work == layer_work::product)
    return products_ * product_time(device, op.product, op.type).value() / speed_;
  const auto each = byte_count(static_cast<std::int64_t>(op.traffic / op.kernels));
  const auto one =
      op.eager ? device.eager_time(op.kind, each) : device.elementwise_time(op.kind, each);
  return op.kernels * one.value() / speed_;
}

part_times step_costs::run(const layer_setting& s, const std::vector<layer_operation>& list,
                           int copies, beside data, double scale) const {
  program p(*this, s, scale);
  for (int i = 0; i < copies; ++i) p.add_layer(list, data);
  return p.run();
}

part_times step_costs::row_of(const layer_setting& s, const std::vector<layer_operation>& list,
                              int count, beside data, double scale) const {
  constexpr int simulated = 4;
  if (count <= simulated) return run(s, list, count, data, scale);
  const auto all = run(s, list, simulated, data, scale);
  const auto steady = all + -1 * run(s, list, simulated - 1, data, scale);
  return all + (count - simulated) * steady;
}

part_times step_costs::alike(const layer_setting& s, pass_kind pass, int count, beside data,
                             double scale) const {
  auto list = pass == pass_kind::forward ? forward_operations(s) : backward_operations(s);
  const auto as_asked = row_of(s, list, count, data, scale);
  if (!s.overlaps_tensor) return as_asked;
  for (auto& op : list) op.in_pieces = false;
  const auto whole = row_of(s, list, count, data, scale);
  return sum_of(whole) < sum_of(as_asked) ? whole : as_asked;
}

part_times step_costs::layers(pass_kind pass, const layer_row& row, beside data,
                              double scale) const {
  part_times total{};
  if (row.others > 0) total = alike(setting_, pass, row.others, data, scale);
  if (row.dense > 0) total = total + alike(without_experts(setting_), pass, row.dense, data, scale);
  return total;
}

part_times step_costs::norm_gradient_sums() const {
  return run(setting_, attnsim::norm_gradient_sums(setting_), 1, {}, 1);
}

part_times step_costs::loss(pass_kind pass) const {
  return run(setting_,
             pass == pass_kind::forward ? loss_forward(setting_) : loss_backward(setting_), 1, {},
             1);
}

part_times step_costs::embedding(pass_kind) const {
  const double bytes = 2 * half * static_cast<double>(setting_.tokens) *
                       static_cast<double>(setting_.model.hidden) / setting_.cut.tensor;
  return run(setting_, {{.name = "embedding", .traffic = bytes}}, 1, {}, 1);
}

part_times step_costs::logits_of(double tokens) const {
  auto one = setting_;
  one.tokens = static_cast<std::int64_t>(tokens);
  return run(one, loss_forward(one), 1, {}, 1);
}

part_times step_costs::optimizer(double dense, double expert) const {
  constexpr double adam =
      7 * single + half;  // reads copy, gradient and moments, writes copy, moments and parameter
  const bool sharded = sharding_ != sharding::none;
  const double own = dense / (sharded ? setting_.cut.replicas() : 1) +
                     expert / (sharded ? setting_.cut.expert_replicas() : 1);
  part_times parts{};
  const auto bytes = byte_count(static_cast<std::int64_t>(adam * own));
  parts[static_cast<std::size_t>(step_part::optimizer)] =
      cluster_.device.memory_time(bytes).value() / speed_;
  return parts;
}

part_times step_costs::exposed_reduction(double parameters) const {
  const auto kind =
      sharding_ == sharding::none ? collective_kind::all_reduce : collective_kind::reduce_scatter;
  part_times parts{};
  parts[static_cast<std::size_t>(step_part::data)] =
      transfer(kind, rank_group::replicas).time_alone(single * parameters).value();
  return parts;
}

seconds step_costs::send() const {
  if (setting_.cut.pipeline < 2) return {};
  const auto t = send_in(cluster_, stage_neighbours(setting_.cut, nodes_width(cluster_)));
  return t.time_alone(half * static_cast<double>(setting_.tokens) *
                      static_cast<double>(setting_.model.hidden) / setting_.cut.tensor);
}

}  // namespace attnsim::ask
