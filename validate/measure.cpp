#include "validate/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "model/error.hpp"
#include "validate/random_memory.hpp"
#include "validate/shard.hpp"
#include "validate/start.hpp"

namespace attnsim::validate {
namespace {

using kernels::backend;
using kernels::dense;
using kernels::event_id;
using kernels::stream_id;
using kernels::token_shape;

constexpr std::size_t bf16_bytes = 2, fp32_bytes = 4;

std::vector<int> ranks_of(const transfer_point& p, int own) {
  const int width = p.members * p.stride;
  const int first = own / width * width + own % p.stride;
  std::vector<int> group;
  for (int i = 0; i < p.members; ++i) group.push_back(first + i * p.stride);
  return group;
}

std::size_t tensor_bytes(const kernel_point& p) {
  const auto heads = std::max(p.rows * p.heads, p.cols * p.kv_heads);
  return static_cast<std::size_t>(p.batch * heads * p.head_dim) * bf16_bytes;
}

/// The largest region that a point's tensors or slots need.
std::size_t region_bytes(const measured_point& point) {
  struct {
    std::size_t operator()(const kernel_point& p) const { return tensor_bytes(p); }
    std::size_t operator()(const memory_point& p) const {
      return static_cast<std::size_t>(p.tokens * p.heads * p.head_dim) * fp32_bytes;
    }
    std::size_t operator()(const transfer_point& p) const {
      return static_cast<std::size_t>(p.bytes * p.members);
    }
    std::size_t operator()(const overlap_point& p) const {
      return std::max((*this)(p.kernel), (*this)(p.transfer));
    }
    std::size_t operator()(const sequence_point& p) const {
      constexpr std::size_t to_fill = std::size_t{64} << 20;
      return p.start == sequence_start::ahead ? to_fill : (*this)(p.cast());
    }
    std::size_t operator()(const product_point& p) const {
      const auto operands = std::max(p.rows, p.cols) * p.inner * std::int64_t{bf16_bytes};
      return static_cast<std::size_t>(
          std::max(operands, p.rows * p.cols * std::int64_t{fp32_bytes}));
    }
    std::size_t operator()(const elementwise_point& p) const {
      return static_cast<std::size_t>(p.rows * p.width) * fp32_bytes;  // or a gate's two, in half
    }
  } bytes;
  return std::visit(bytes, point);
}

/// Device memory in equal parts.
class regions {
 public:
  static constexpr std::size_t count = 10;

  regions(backend& device, std::size_t bytes)
      : each_((bytes + 255) / 256 * 256), memory_(device, each_ * count) {}

  std::byte* at(std::size_t i) const { return memory_.data() + i * each_; }
  std::size_t bytes() const { return each_; }

 private:
  std::size_t each_;
  random_memory memory_;
};

/// A device with one stream for computation and one for communication.
struct workbench {
  explicit workbench(std::unique_ptr<backend> d)
      : device(std::move(d)),
        compute(device->create_stream(kernels::stream_priority::normal)),
        communication(device->create_stream(kernels::stream_priority::high)),
        beside(device->create_stream(kernels::stream_priority::high)) {}

  std::unique_ptr<backend> device;
  stream_id compute, communication, beside;
};

class session {
 public:
  session(const measure_request& r, transport& t)
      : request_(r), transport_(t), clock_offset_(t.clock_offset()) {
    std::size_t largest = 1 << 20;
    for (const auto& m : r.points) largest = std::max(largest, region_bytes(m.what));
    memory_ = std::make_unique<regions>(*bench(r.transfer_device).device, largest);
  }

  bool run() {
    measure_progress progress{.wanted = request_.points.size() * request_.rounds};
    for (const auto& m : request_.points) progress.samples += std::min(m.rounds(), request_.rounds);
    std::set<const measurement*> left_out;
    std::vector<std::size_t> order(request_.points.size());
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random;  // the same on all ranks
    for (std::size_t round = 0; round < request_.rounds; ++round) {
      // What ran before decides a device's clocks: in any order no point always follows the same ones.
      std::shuffle(order.begin(), order.end(), random);
      for (const auto number : order) {
        auto& m = request_.points[number];
        if (m.rounds() > round || left_out.contains(&m)) continue;
        if (transport_.rank() == 0) request_.report(progress);
        if (told_to_stop()) return false;
        if (const auto s = slowest(try_to_take(m.what)); !s.empty()) {
          m.add(s);
          ++progress.samples;
        } else {
          left_out.insert(&m);
          progress.wanted -= request_.rounds - round;
        }
      }
    }
    if (transport_.rank() == 0) request_.report(progress);
    return true;
  }

 private:
  workbench& bench(const std::string& kernel) {
    auto& made = benches_[kernel];
    if (!made) made = std::make_unique<workbench>(request_.device(kernel));
    return *made;
  }

  bool told_to_stop() {
    const bool stops = transport_.rank() == 0 && request_.stops();
    return !transport_.share(blob(stops ? 1 : 0)).at(0).empty();
  }

  /// Empty where the device does not do it.
  sample try_to_take(const measured_point& point) {
    try {
      return std::visit([this](const auto& p) { return take(p); }, point);
    } catch (const transport_error&) {
      throw;
    } catch (const std::exception& e) {
      if (transport_.rank() == 0) request_.leaves_out(point, e.what());
      return {};
    }
  }

  /// Empty where some rank has none.
  sample slowest(sample own) {
    blob data;
    for (const auto& [name, value] : own) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      data.insert(data.end(), bytes, bytes + sizeof value);
    }
    for (const auto& other : transport_.share(data)) {
      if (other.size() != data.size()) return {};
      std::size_t at = 0;
      for (auto& [name, value] : own) {
        double theirs = 0;
        std::memcpy(&theirs, other.data() + at, sizeof theirs);
        value = std::max(value, theirs);
        at += sizeof theirs;
      }
    }
    return own;
  }

  // --- What stays on a device -----------------------------------------------------------------------

  /// Calls one behind the other, of which one takes `seconds` in the mean.
  template <typename Call>
  sample repeated(workbench& on, const Call& call, double enough = 1e-3) {
    const int most = static_cast<int>(50e3 * enough);
    call();
    const double once = timed(on, call, 1).at("time_s");
    const int times = std::clamp(static_cast<int>(std::ceil(enough / once)), 1, most);
    return timed(on, call, times);
  }

  template <typename Call>
  sample timed(workbench& on, const Call& call, int times) {
    auto& device = *on.device;
    const auto begin = device.record(on.compute);
    const double from = steady_seconds();
    for (int i = 0; i < times; ++i) call();
    const double launched = steady_seconds() - from;
    const auto end = device.record(on.compute);
    const double total = span(device, begin, end);
    device.synchronize(on.compute);
    return {{"time_s", total / times}, {"launch_s", launched / times}};
  }

  static double span(backend& device, event_id begin, event_id end) {
    const double seconds = device.seconds_between(begin, end);
    device.release(begin);
    device.release(end);
    return seconds;
  }

  sample take(const kernel_point& p) {
    constexpr std::chrono::milliseconds enough(10);  // for the clocks to recover from a power limit
    auto& on = bench(p.kernel);
    std::this_thread::sleep_for(enough);
    std::size_t call = 0;
    return repeated(on, [&] { launch(on, p, call++); });
  }

  /// Few rows find their keys elsewhere at each call, as a cache of keys is not in that of the device.
  void launch(workbench& on, const kernel_point& p, std::size_t call = 0) const {
    const kernels::block_shape shape{
        .batch = p.batch,
        .heads = p.heads,
        .kv_heads = p.kv_heads,
        .head_dim = p.head_dim,
        .rows = p.rows,
        .cols = p.cols,
        .mask = {.causal = p.mask == mask_kind::causal, .query_first = p.cols - p.rows}};
    const token_shape rows{p.batch, p.rows, p.heads, p.head_dim};
    const token_shape cols{p.batch, p.cols, p.kv_heads, p.head_dim};
    const token_shape row_statistics{p.batch, p.rows, p.heads, 1};
    const auto half = [&](std::size_t region, const token_shape& s) {
      return placed(memory_->at(region), data_type::bf16, s);
    };
    const auto keys = [&](std::size_t region) {
      const auto bytes = (dense_bytes(data_type::bf16, cols) + 255) / 256 * 256;
      const auto places = has_few_rows(p) ? memory_->bytes() / bytes : 1;
      return placed(memory_->at(region) + call % std::max<std::size_t>(places, 1) * bytes,
                    data_type::bf16, cols);
    };
    const auto single = [&](std::size_t region) {
      return placed(memory_->at(region), data_type::fp32, row_statistics);
    };
    if (p.pass == pass_kind::forward) {
      return on.device->forward(on.compute, {.shape = shape,
                                             .query = half(0, rows),
                                             .key = keys(1),
                                             .value = keys(2),
                                             .output = half(3, rows),
                                             .lse = single(4)});
    }
    on.device->backward(on.compute, {.shape = shape,
                                     .query = half(0, rows),
                                     .key = half(1, cols),
                                     .value = half(2, cols),
                                     .output = {},
                                     .output_gradient = half(5, rows),
                                     .lse = single(6),
                                     .delta = single(7),
                                     .query_gradient = half(3, rows),
                                     .key_gradient = half(8, cols),
                                     .value_gradient = half(9, cols)});
  }

  sample take(const memory_point& p) {
    auto& on = bench(request_.transfer_device);
    return repeated(on, [&] { launch(on, p); });
  }

  void launch(workbench& on, const memory_point& p) const {
    const token_shape all{1, p.tokens, p.heads, p.head_dim};
    const token_shape statistics{1, p.tokens, p.heads, 1};
    const auto tensor = [&](std::size_t region, data_type type, const token_shape& s) {
      return dense(memory_->at(region), type, s);
    };
    const auto sum = tensor(3, data_type::fp32, all), part = tensor(0, data_type::bf16, all);
    const auto sum_lse = tensor(4, data_type::fp32, statistics);
    const auto part_lse = tensor(6, data_type::fp32, statistics);
    auto& device = *on.device;
    if (p.operation == "merge") {
      device.merge(on.compute, all, sum, sum_lse, part, part_lse);
    } else if (p.operation == "accumulate") {
      device.accumulate(on.compute, all, sum, part);
    } else if (p.operation == "cast") {
      device.cast(on.compute, all, tensor(8, data_type::bf16, all), sum);
    } else {
      device.delta(on.compute, all, part, tensor(1, data_type::bf16, all), sum_lse);
    }
  }

  sample take(const product_point& p) {
    constexpr double enough = 30e-3, soon = 5e-3;  // for clocks to settle, and to come up
    constexpr std::chrono::milliseconds pause(10);
    auto& on = bench(p.kernel);
    const kernels::product_arguments a{
        .rows = p.rows,
        .cols = p.cols,
        .inner = p.inner,
        .left = memory_->at(0),
        .left_transposed = p.use >= product_use::weight_gradient,
        .right = memory_->at(1),
        .right_transposed = p.use == product_use::forward,
        .result_type = p.use == product_use::gradient_sum ? data_type::fp32 : data_type::bf16,
        .result = memory_->at(2),
        .adds = p.use == product_use::gradient_sum};
    const auto call = [&] { on.device->product(on.compute, a); };
    repeated(on, call, enough);
    auto settled = repeated(on, call, enough);
    std::this_thread::sleep_for(pause);
    repeated(on, call, soon);
    settled["start_s"] = repeated(on, call, enough).at("time_s");
    settled["later_s"] = repeated(on, call, enough).at("time_s");
    return settled;
  }

  sample take(const elementwise_point& p) {
    constexpr std::int64_t head_dim = 128;
    auto& on = bench(p.kernel);
    auto& device = *on.device;
    const auto half = [&](std::size_t region) { return memory_->at(region); };
    const auto single = [&](std::size_t region) {
      return reinterpret_cast<float*>(memory_->at(region));
    };
    const auto heads = std::max<std::int64_t>(1, p.width / head_dim);
    const token_shape rows{1, p.rows, heads, p.width / heads};
    const auto placed_at = [&](std::size_t region, data_type type) {
      return dense(memory_->at(region), type, rows);
    };
    const auto call = [&] {
      switch (p.operation) {
        case elementwise_kind::norm:
          return device.norm(on.compute, {.rows = p.rows,
                                          .width = p.width,
                                          .residual = half(0),
                                          .branch = half(1),
                                          .weight = half(2),
                                          .sum = half(3),
                                          .result = half(4),
                                          .scale = single(5)});
        case elementwise_kind::norm_gradient:
          return device.norm_gradient(on.compute, {.rows = p.rows,
                                                   .width = p.width,
                                                   .sum = half(0),
                                                   .scale = single(5),
                                                   .weight = half(2),
                                                   .result_gradient = half(1),
                                                   .residual_gradient = half(6),
                                                   .sum_gradient = half(3),
                                                   .weight_gradient = single(7)});
        case elementwise_kind::gate:
          return device.gate(
              on.compute, {.rows = p.rows, .width = p.width, .inputs = half(0), .result = half(3)});
        case elementwise_kind::gate_gradient:
          return device.gate_gradient(on.compute, {.rows = p.rows,
                                                   .width = p.width,
                                                   .inputs = half(0),
                                                   .result_gradient = half(1),
                                                   .input_gradient = half(3)});
        case elementwise_kind::rotation:
          return device.rotate(on.compute, rows, placed_at(3, data_type::bf16),
                               placed_at(0, data_type::bf16), single(5), false);
        case elementwise_kind::cast:
        case elementwise_kind::plain:
          return device.cast(on.compute, rows, placed_at(3, data_type::fp32),
                             placed_at(0, data_type::bf16));
      }
    };
    return repeated(on, call);
  }

  // --- Communication --------------------------------------------------------------------------------

  channel& channel_of(const std::string& kernel, const transfer_point& p, bool beside = false) {
    auto& made = channels_[{kernel, p.members, p.stride, p.channels, beside}];
    if (!made) {
      auto& on = bench(kernel);
      made = transport_.open(*on.device, beside ? on.beside : on.communication,
                             ranks_of(p, transport_.rank()), p.channels);
    }
    return *made;
  }

  void launch(channel& through, const transfer_point& p, bool beside = false) const {
    const payload both[] = {{.from = memory_->at(0),
                             .to = memory_->at(beside ? 5 : 3),
                             .slot_bytes = static_cast<std::size_t>(p.bytes),
                             .type = data_type::bf16},
                            {.from = memory_->at(7),
                             .to = memory_->at(8),
                             .slot_bytes = static_cast<std::size_t>(p.also),
                             .type = data_type::bf16}};
    const auto data = std::span(both).first(p.also > 0 ? 2 : 1);
    const std::string what(name_of(p.operation));
    const int own = transport_.rank() / p.stride % p.members;
    switch (p.operation) {
      case transfer_kind::send: {
        const bool sends = own % 2 == 0, alone = sends && own + 1 == p.members;
        return through.send_receive(what, sends && !alone ? own + 1 : own, sends ? own : own - 1,
                                    data);
      }
      case transfer_kind::exchange:
        return through.send_receive(what, (own + 1) % p.members, (own + p.members - 1) % p.members,
                                    data);
      case transfer_kind::all_gather:
        return through.all_gather(what, data);
      case transfer_kind::reduce_scatter:
        return through.reduce_scatter(what, data);
      case transfer_kind::all_to_all:
        return through.all_to_all(what, data);
      case transfer_kind::all_reduce:
        return through.all_reduce(what, data);
    }
  }

  /// Work that keeps the stream busy while the host launches what is measured.
  void delay(workbench& on) {
    constexpr std::size_t enough = std::size_t{1} << 31, most_times = 32;
    const auto bytes = std::min(memory_->bytes(), enough);
    const token_shape some{1, static_cast<std::int64_t>(bytes / fp32_bytes / 128), 1, 128};
    const auto where = dense(memory_->at(regions::count - 1), data_type::fp32, some);
    for (std::size_t i = 0; i < std::min(enough / bytes, most_times); ++i)
      on.device->fill(on.communication, some, where, 0.5f);
  }

  sample take(const transfer_point& p) {
    auto& on = bench(request_.transfer_device);
    auto& through = channel_of(request_.transfer_device, p);
    auto& device = *on.device;
    connect(on, through, p);
    transfer_point wake = p;  // links that went to sleep (NVLink: 90 us)
    wake.operation = transfer_kind::exchange;
    wake.bytes = 1 << 20;
    wake.also = 0;
    transfer_point meet = wake;  // after a long exchange the ranks are apart
    meet.bytes = 64;
    launch(through, meet);  // the first one after other work takes the host longer
    device.synchronize(on.communication);
    transport_.barrier();
    delay(on);
    launch(through, wake);
    launch(through, meet);
    const auto begin = device.record(on.communication);
    const double from = steady_seconds();
    launch(through, p);
    const double launched = steady_seconds() - from;
    const auto end = device.record(on.communication);
    double time = 0;
    if (p.at_once > 1) time = time_beside(on, p, begin);
    time = std::max(time, span(device, begin, end));
    device.synchronize(on.communication);
    return {{"time_s", time}, {"launch_s", launched}};
  }

  /// Of a second one, from `begin`.
  double time_beside(workbench& on, const transfer_point& p, event_id begin) {
    auto& device = *on.device;
    device.wait(on.beside, begin);
    launch(channel_of(request_.transfer_device, p, true), p, true);
    const auto end = device.record(on.beside);
    const double time = device.seconds_between(begin, end);
    device.release(end);
    device.synchronize(on.beside);
    return time;
  }

  /// Connections are made on first use.
  void connect(workbench& on, channel& through, const transfer_point& p) {
    const auto key = std::tuple(p.operation, p.members, p.stride, p.channels, p.at_once);
    if (!connected_.insert(key).second) return;
    launch(through, p);
    if (p.at_once > 1) {
      launch(channel_of(request_.transfer_device, p, true), p, true);
      on.device->synchronize(on.beside);
    }
    on.device->synchronize(on.communication);
  }

  sample take(const overlap_point& p) {
    auto& on = bench(p.kernel.kernel);
    auto& through = channel_of(p.kernel.kernel, p.transfer);
    auto& device = *on.device;
    launch(through, p.transfer);
    launch(on, p.kernel);
    device.synchronize(on.communication);
    device.synchronize(on.compute);
    start_together(transport_, clock_offset_);
    const auto origin = device.record(on.compute);
    event_id begins[2], ends[2];
    for (const bool second : {false, true}) {
      const bool transfers = second != (p.order == launch_order::communication_first);
      const auto stream = transfers ? on.communication : on.compute;
      begins[transfers] = device.record(stream);
      transfers ? launch(through, p.transfer) : launch(on, p.kernel);
      ends[transfers] = device.record(stream);
    }
    const double total =
        std::max(device.seconds_between(origin, ends[0]), device.seconds_between(origin, ends[1]));
    device.release(origin);
    const double kernel = span(device, begins[0], ends[0]);
    const double transfer = span(device, begins[1], ends[1]);
    device.synchronize(on.communication);
    device.synchronize(on.compute);
    return {{"time_s", total}, {"kernel_s", kernel}, {"transfer_s", transfer}};
  }

  // --- Launches -----------------------------------------------------------------------------------

  sample take(const sequence_point& p) {
    auto& on = bench(request_.transfer_device);
    auto& device = *on.device;
    auto* through = p.operations == sequence_kind::casts
                        ? nullptr
                        : &channel_of(request_.transfer_device, p.exchange());
    if (through) connect(on, *through, p.exchange());
    launch(on, p.cast());
    device.synchronize(on.compute);
    if (p.start == sequence_start::graph) return take_graph(p, on, through);
    auto first = on.compute;
    if (p.start == sequence_start::ahead) {
      transport_.barrier();
      delay(on);
      if (through) launch(*through, p.exchange());  // the ranks meet
      first = on.communication;
    } else {
      start_together(transport_, clock_offset_);
    }
    std::vector<event_id> events{device.record(first)};
    const double from = steady_seconds();
    launch(on, p, through, first, events);
    const double launched = steady_seconds() - from;
    return {{"time_s", spans(on, events)}, {"launch_s", launched}};
  }

  /// Each behind the one before, the first behind what `latest` has; between events that are added.
  void launch(workbench& on, const sequence_point& p, channel* through, stream_id latest,
              std::vector<event_id>& events) const {
    auto& device = *on.device;
    for (int number = 0; number < p.count; ++number) {
      const bool communicates = p.communicates(number);
      const auto stream = communicates ? on.communication : on.compute;
      if (std::exchange(latest, stream) != stream) device.wait(stream, events.back());
      events.push_back(device.record(stream));
      communicates ? launch(*through, p.exchange()) : launch(on, p.cast());
      events.push_back(device.record(stream));
    }
  }

  sample take_graph(const sequence_point& p, workbench& on, channel* through) {
    auto& device = *on.device;
    device.begin_capture(on.compute);
    std::vector<event_id> events{device.record(on.compute)};
    launch(on, p, through, on.compute, events);
    if (p.communicates(p.count - 1)) device.wait(on.compute, events.back());
    const auto graph = device.end_capture(on.compute);
    device.release(events.front());
    start_together(transport_, clock_offset_);
    events.front() = device.record(on.compute);
    device.launch(on.compute, graph);
    const double time = spans(on, events);
    device.release(graph);
    return {{"time_s", time}};
  }

  /// From the first event to the last; all are released.
  static double spans(workbench& on, const std::vector<event_id>& events) {
    auto& device = *on.device;
    const double time = device.seconds_between(events.front(), events.back());
    for (const auto event : events) device.release(event);
    device.synchronize(on.compute);
    device.synchronize(on.communication);
    return time;
  }

  const measure_request& request_;
  transport& transport_;
  double clock_offset_;
  std::map<std::string, std::unique_ptr<workbench>> benches_;
  std::unique_ptr<regions> memory_;
  std::map<std::tuple<std::string, int, int, int, bool>, std::unique_ptr<channel>> channels_;
  std::set<std::tuple<transfer_kind, int, int, int, int>> connected_;
};

}  // namespace

bool measure(const measure_request& r, transport& t) {
  return session(r, t).run();
}

}  // namespace attnsim::validate
