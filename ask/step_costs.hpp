// What layers, embedding and loss cost on one device of a step: seconds by what they go to. ask/step.hpp puts them together.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ask/predict.hpp"
#include "model/cost/group_transfer.hpp"
#include "model/layer/layer.hpp"
#include "model/step/memory.hpp"
#include "sim/device_run.hpp"

namespace attnsim::ask {

/// What a device's time goes to; of transfers what is exposed.
enum class step_part { products, attention, elementwise, tensor, expert, data, bubble, optimizer };
inline constexpr int step_parts = 8;
std::string_view name_of(step_part);
step_part part_of(const layer_operation&);  ///< collectives by the ranks that take part

using part_times = std::array<double, step_parts>;  ///< seconds

part_times operator+(part_times, const part_times&);
part_times operator*(double, part_times);
double sum_of(const part_times&);

/// What many steps of one cluster share, each worked out once: predictions of attention, and what groups' collectives ask of
/// links.
class known_parts {
 public:
  /// The cluster is kept by reference.
  explicit known_parts(const cluster& c) : work_(c) {}
  /// As shared_work.
  known_parts(const cluster& c, known_schedules::device device, known_schedules& schedules)
      : work_(c, std::move(device), schedules) {}

  shared_work& work() { return work_; }
  const prediction& attention(const attnsim::attention&, const strategy&, int ranks, pass_kind,
                              prediction_method);
  const group_transfer& transfer(collective_kind, const degrees&, rank_group);

 private:
  shared_work work_;
  std::map<std::string, prediction> predictions_;
  std::map<std::vector<int>, group_transfer> transfers_;
};

/// What one attention operation takes and sends, forward and backward: the mean over a model's layers.
struct attention_cost {
  double time[2] = {};        ///< seconds
  double sent_bytes[2] = {};  ///< of the rank that sends most
};

/// What data-parallel ranks do beside a pass over a layer.
struct beside {
  bool gathers = false;  ///< its parameters are gathered first
  bool reduces = false;  ///< its gradients are reduced afterwards
};

/// Layers in a row: those with a dense MLP where others have experts come first.
struct layer_row {
  int dense = 0;
  int others = 0;

  int count() const { return dense + others; }
  friend bool operator==(const layer_row&, const layer_row&) = default;
};

class step_costs {
 public:
  /// References are kept. Products take so many times what they take one behind the other.
  step_costs(const cluster&, const layer_setting&, sharding, const attention_cost&, known_parts&,
             double products = 1);
  step_costs(const step_costs&) = delete;

  /// Of so many layers in a row, with attention `scale` times as long. Exchanges of tensor ranks that may overlap do where that
  /// is faster: pieces of few tokens are not.
  part_times layers(pass_kind, const layer_row&, beside, double scale = 1) const;
  part_times norm_gradient_sums() const;
  part_times loss(pass_kind) const;
  part_times embedding(pass_kind) const;
  /// Of the output layer for so many tokens.
  part_times logits_of(double tokens) const;
  /// Adam on the device's share of so many parameters, in and out of experts.
  part_times optimizer(double dense, double expert) const;
  /// Sums gradients of `parameters` that no pass hides.
  part_times exposed_reduction(double parameters) const;
  seconds send() const;

 private:
  class program;

  part_times alike(const layer_setting&, pass_kind, int count, beside, double scale) const;
  part_times run(const layer_setting&, const std::vector<layer_operation>&, int copies, beside,
                 double scale) const;
  part_times row_of(const layer_setting&, const std::vector<layer_operation>&, int count, beside,
                    double scale) const;
  double local(const layer_operation&) const;
  const group_transfer& transfer(collective_kind, rank_group) const;

  const cluster& cluster_;
  const layer_setting& setting_;
  sharding sharding_;
  attention_cost attention_;
  known_parts& known_;
  double speed_;  ///< of the slowest device
  double products_;
  group_transfer exchange_[2];  ///< attention's own, as traffic beside others'
};

}  // namespace attnsim::ask
