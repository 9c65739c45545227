#include "calibrate/overlap.hpp"

#include "calibrate/predicted.hpp"
#include "model/cost/placed_schedule.hpp"
#include "sim/simulator.hpp"

namespace attnsim {
namespace {

constexpr axis_set all_ranks = only(0);

class two_operations {
 public:
  explicit two_operations(const overlap_point& p)
      : point_(p), builder_("overlap", rank_grid({p.transfer.members}), p.kernel.pass) {
    builder_.stream("transfer");
  }

  schedule program() {
    const bool transfers_first = point_.order == launch_order::communication_first;
    if (transfers_first) add_transfer();
    add_kernel();
    if (!transfers_first) add_transfer();
    return builder_.finish();
  }

 private:
  void add_kernel() {
    using enum tensor;
    if (point_.kernel.pass == pass_kind::forward)
      return builder_.add(op_kind::attention, 0, builder_.own({q, k, v}), builder_.own({o, lse}));
    builder_.add(op_kind::attention_backward, 0, builder_.own({q, k, v, d_o, lse, delta}),
                 builder_.own({d_q, d_k, d_v}));
  }

  void add_transfer() {
    constexpr int stream = 1;
    const auto one = builder_.own({tensor::k});
    switch (point_.transfer.operation) {
      case transfer_kind::all_gather:
        return builder_.add(op_kind::all_gather, stream, one,
                            builder_.gathered({tensor::k}, all_ranks), all_ranks);
      case transfer_kind::reduce_scatter:
        return builder_.add(op_kind::reduce_scatter, stream,
                            builder_.gathered({tensor::k}, all_ranks), one, all_ranks);
      default:
        return builder_.add(op_kind::shift, stream, one,
                            builder_.chunk({tensor::k}, {.shift = {-1}}), all_ranks, 1);
    }
  }

  const overlap_point& point_;
  schedule_builder builder_;
};

std::vector<int> devices_of(const transfer_point& p) {
  std::vector<int> devices;
  for (int i = 0; i < p.members; ++i) devices.push_back(i * p.stride);
  return devices;
}

}  // namespace

overlap_times simulated(const overlap_point& p, const cluster& c) {
  const auto flow = flow_of(p.transfer, c);
  const auto on = with_channels_of(p.transfer, c);
  const auto& k = p.kernel;
  const attention problem{.batch = k.batch,
                          .heads = k.heads,
                          .kv_heads = k.kv_heads,
                          .head_dim = k.head_dim,
                          .sequence = k.rows * p.transfer.members,
                          .mask = k.mask};
  const strategy how{.schedule = "overlap",
                     .tokens = token_layout::contiguous,
                     .kernel = nearest_kernel(c.device, k.kernel),
                     .launch = p.order,
                     .start = run_start::idle};
  const auto kernel = kernel_time(c.device, c.device.kernel(how.kernel), call_of(k), how.start);
  placed_schedule both(placed_ranks(on, devices_of(p.transfer)), problem, how,
                       two_operations(p).program());
  both.use_local_times([&](std::size_t, int) { return kernel; });
  both.use_sent_bytes([&](std::size_t, int) { return flow.bytes; });
  const auto timeline = simulate(both, {.record = true});
  const auto& launch = c.device.idle_start;
  overlap_times times{.total = timeline.duration()};
  for (const auto& i : timeline.ranks.front().intervals) {
    const bool computes = is_kernel(both.program().program[i.operation].kind);
    (computes ? times.kernel : times.transfer) =
        (computes ? launch.launch : launch.launch_communication) + i.end - i.start;
  }
  return times;
}

}  // namespace attnsim
