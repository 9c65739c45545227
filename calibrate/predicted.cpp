#include "calibrate/predicted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "calibrate/overlap.hpp"
#include "calibrate/sequence.hpp"
#include "model/error.hpp"

namespace attnsim {
namespace {

seconds kernel_alone(const kernel_point& p, const device_profile& device) {
  return kernel_time(device, device.kernel(nearest_kernel(device, p.kernel)), call_of(p));
}

seconds memory_alone(const memory_point& p, const device_profile& device) {
  const byte_count traffic(memory_traffic(p));
  return p.operation == "delta" ? device.delta_time(traffic) : device.memory_time(traffic);
}

seconds product_alone(const product_point& p, const device_profile& device) {
  return product_time(device, product_of(p), product_type::half);
}

seconds elementwise_alone(const elementwise_point& p, const device_profile& device) {
  return device.elementwise_time(p.operation, byte_count(elementwise_traffic(p)));
}

seconds transfer_alone(const transfer_point& p, const cluster& c) {
  auto flow = flow_of(p, c);
  if (p.also > 0) {
    const auto both = static_cast<double>(p.bytes + p.also);
    flow.bytes = std::max(
        both, static_cast<double>(p.bytes) / c.device.transport(flow.transport).message_share);
  }
  if (p.at_once == 1) return time_alone(c, std::span(&flow, 1));
  auto all = flow;  // each link carries all of them; each is as fast as one at most
  for (auto& use : all.uses) use.weight *= p.at_once;
  return time_alone(c, std::span(&all, 1));
}

}  // namespace

kernel_call call_of(const kernel_point& p) {
  const auto hidden = p.mask == mask_kind::causal ? p.rows * (p.rows - 1) / 2 : 0;
  return {.pass = p.pass,
          .batch = p.batch,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .rows = p.rows,
          .cols = p.cols,
          .pairs = p.rows * p.cols - hidden};
}

matrix_product product_of(const product_point& p) {
  constexpr double half = 2, read_and_written = 8;
  return {.rows = static_cast<double>(p.rows),
          .cols = static_cast<double>(p.cols),
          .inner = static_cast<double>(p.inner),
          .result_bytes = p.use == product_use::gradient_sum ? read_and_written : half};
}

std::string nearest_kernel(const device_profile& device, const std::string& kernel) {
  for (const auto& name : {kernel, std::string(unversioned(kernel))}) {
    if (const auto* found = device.find_kernel(name)) return found->name;
  }
  return "";
}

int channels_for_peers(int allowed) {
  const auto power = static_cast<int>(std::bit_ceil(static_cast<unsigned>(allowed)));
  return power > 8 ? power / 2 : power;
}

cluster with_channels_of(const transfer_point& p, const cluster& c) {
  auto limited = c;
  for (auto& t : limited.device.transports) {
    if (p.channels > 0) t.channels = channels_for_peers(p.channels);
  }
  return limited;
}

collective_flow flow_of(const transfer_point& p, const cluster& c) {
  std::vector<int> devices;
  for (int i = 0; i < p.members; ++i) devices.push_back(i * p.stride);
  if (devices.back() >= c.devices()) {
    throw input_error(describe(p) + fmt::format(": {} has {} devices", c.name, c.devices()));
  }
  auto limited = with_channels_of(p, c);
  for (auto& t : limited.device.transports) {
    if (p.operation == transfer_kind::send) {
      t.efficiency = t.one_way_efficiency;
      t.ramp = t.one_way_ramp;
    }
  }
  const double bytes = static_cast<double>(p.bytes), others = bytes * (p.members - 1);
  switch (p.operation) {
    case transfer_kind::send:
    case transfer_kind::exchange:
      return pairs_flow(limited, {devices[0], devices[1]}, bytes);
    case transfer_kind::all_to_all:
      return pairs_flow(limited, devices, others);
    case transfer_kind::all_reduce:
      return ring_flow(limited, devices, 2, 2 * others / p.members);
    default:
      return ring_flow(limited, devices, 1, others);
  }
}

seconds predicted_time(const measured_point& point, const cluster& c) {
  struct {
    const cluster& on;
    seconds operator()(const kernel_point& p) const { return kernel_alone(p, on.device); }
    seconds operator()(const memory_point& p) const { return memory_alone(p, on.device); }
    seconds operator()(const transfer_point& p) const { return transfer_alone(p, on); }
    seconds operator()(const overlap_point& p) const { return simulated(p, on).total; }
    seconds operator()(const product_point& p) const { return product_alone(p, on.device); }
    seconds operator()(const elementwise_point& p) const { return elementwise_alone(p, on.device); }
    seconds operator()(const sequence_point& p) const { return simulated(p, on); }
  } time{c};
  return std::visit(time, point);
}

double uncertainty_of(const measured_point& point, const cluster& c) {
  struct {
    const cluster& on;
    double operator()(const kernel_point& p) const {
      return kernel_uncertainty(on.device, on.device.find_kernel(p.kernel), call_of(p));
    }
    double operator()(const memory_point&) const {
      const auto& u = on.device.uncertainty;
      return u.memory > 0 ? u.memory : u.compute;
    }
    double operator()(const transfer_point& p) const {
      return on.device.communication_uncertainty(flow_of(p, on).transport);
    }
    double operator()(const overlap_point& p) const {
      return std::max(on.device.uncertainty.overlap,
                      std::hypot((*this)(p.kernel), (*this)(p.transfer)));
    }
    double operator()(const product_point&) const { return on.device.uncertainty.compute; }
    double operator()(const elementwise_point&) const { return on.device.uncertainty.compute; }
    double operator()(const sequence_point& p) const {
      return p.operations == sequence_kind::casts ? on.device.uncertainty.compute
                                                  : (*this)(p.exchange());
    }
  } uncertainty{c};
  return std::visit(uncertainty, point);
}

}  // namespace attnsim
