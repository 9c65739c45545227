#include "calibrate/predicted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/error.hpp"

namespace attnsim {
namespace {

seconds kernel_alone(const kernel_point& p, const device_profile& device) {
  return kernel_time(device, device.kernel(profile_kernel(device, p.kernel)), call_of(p));
}

seconds memory_alone(const memory_point& p, const device_profile& device) {
  const byte_count traffic(memory_traffic(p));
  return p.operation == "delta" ? device.delta_time(traffic) : device.memory_time(traffic);
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

/// The device and the run of a kernel and a transfer that are launched together.
struct overlap {
  double kernel, transfer;  ///< alone
  double slowdown;
  double parts;
  double launch, launch_communication;

  /// What is left of the kernel when `beside` seconds of transfer begin takes so long.
  double slowed(double left, double beside) const {
    return left * slowdown <= beside ? left * slowdown : left + beside * (1 - 1 / slowdown);
  }
  double communication_first() const {
    const double begin = launch_communication + launch, end = launch_communication + transfer;
    return std::max(begin + slowed(kernel, std::max(0.0, end - begin)), end);
  }
  double compute_first() const {
    const double part = kernel / parts;
    const double before = std::min(kernel, std::ceil(launch_communication / part) * part);
    return launch + before + std::max(slowed(kernel - before, transfer), transfer);
  }
};

seconds both(const overlap_point& p, cluster c) {
  c.device.start = run_start::idle;
  const auto flow = flow_of(p.transfer, c);
  const auto* kernel = c.device.kernel(profile_kernel(c.device, p.kernel.kernel));
  const overlap run{.kernel = kernel_time(c.device, kernel, call_of(p.kernel)).value(),
                    .transfer = time_alone(c, std::span(&flow, 1)).value(),
                    .slowdown = c.device.slowdown(flow.transport),
                    .parts = kernel_parts(c.device, kernel, call_of(p.kernel)),
                    .launch = c.device.idle_start.launch.value(),
                    .launch_communication = c.device.idle_start.launch_communication.value()};
  return seconds(p.order == launch_order::communication_first ? run.communication_first()
                                                              : run.compute_first());
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

std::string profile_kernel(const device_profile& device, const std::string& kernel) {
  const std::string wanted = kernel == "cuda" ? "attnsim-cuda" : kernel;
  std::string found;
  for (const auto& k : device.kernels) {
    if (k.name.starts_with(wanted)) found = k.name;
  }
  return found;
}

int channels_for_peers(int processors) {
  const auto power = static_cast<int>(std::bit_ceil(static_cast<unsigned>(processors)));
  return power > 8 ? power / 2 : power;
}

collective_flow flow_of(const transfer_point& p, const cluster& c) {
  std::vector<int> devices;
  for (int i = 0; i < p.members; ++i) devices.push_back(i * p.stride);
  if (devices.back() >= c.devices()) {
    throw input_error(describe(p) + fmt::format(": {} has {} devices", c.name, c.devices()));
  }
  auto limited = c;
  for (auto& t : limited.device.transports) {
    if (p.processors > 0) t.channels = channels_for_peers(p.processors);
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
    seconds operator()(const overlap_point& p) const { return both(p, on); }
  } time{c};
  return std::visit(time, point);
}

double uncertainty_of(const measured_point& point, const cluster& c) {
  struct {
    const cluster& on;
    double operator()(const kernel_point&) const { return on.device.uncertainty.compute; }
    double operator()(const memory_point&) const { return on.device.uncertainty.compute; }
    double operator()(const transfer_point& p) const {
      return on.device.communication_uncertainty(flow_of(p, on).transport);
    }
    double operator()(const overlap_point& p) const {
      return std::hypot((*this)(p.kernel), (*this)(p.transfer));
    }
  } uncertainty{c};
  return std::visit(uncertainty, point);
}

}  // namespace attnsim
