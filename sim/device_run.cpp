#include "sim/device_run.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>

#include "sim/max_min.hpp"

namespace attnsim {
namespace {

constexpr double never_ends = std::numeric_limits<double>::infinity();

/// Links that all transfers load alike are one; those that another one outdoes in every transfer hold nothing up.
class shared_links {
 public:
  explicit shared_links(std::span<const device_operation> operations) {
    for (const auto& op : operations) {
      if (op.transfer != nullptr) number_.try_emplace(op.transfer, number_.size());
    }
    std::map<link_id, std::vector<double>> loads;
    for (const auto& [transfer, number] : number_) {
      for (const auto& use : transfer->uses) {
        auto& load = loads[use.link];
        load.resize(number_.size());
        load[number] += use.weight;
      }
    }
    for (auto& [link, load] : loads) add(std::move(load));
  }

  /// A second of one link's time is its capacity.
  std::vector<double> capacities() const { return std::vector<double>(loads_.size(), 1.0); }

  flow_demand demand(const group_transfer& t) const {
    flow_demand d;
    for (std::size_t l = 0; l < loads_.size(); ++l) {
      const double weight = loads_[l][number_.at(&t)];
      if (weight > 0) d.path.push_back({static_cast<link_id>(l), weight});
    }
    if (t.least_seconds_a_byte > 0) d.rate_limit = 1 / t.least_seconds_a_byte;
    return d;
  }

 private:
  static bool outdoes(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x >= y; });
  }
  void add(std::vector<double> load) {
    for (const auto& known : loads_) {
      if (outdoes(known, load)) return;
    }
    std::erase_if(loads_, [&](const auto& known) { return outdoes(load, known); });
    loads_.push_back(std::move(load));
  }

  std::map<const group_transfer*, std::size_t> number_;
  std::vector<std::vector<double>> loads_;
};

class runner {
 public:
  runner(const device_profile& device, std::span<const device_operation> operations, int kinds)
      : device_(device), operations_(operations), links_(operations) {
    const auto kind_count = static_cast<std::size_t>(kinds);
    result_.start.resize(operations.size(), seconds(-1));
    result_.end.resize(operations.size(), seconds(-1));
    result_.busy.resize(kind_count);
    result_.waits.resize(kind_count);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto lane = static_cast<std::size_t>(operations[i].stream);
      if (lane >= streams_.size()) streams_.resize(lane + 1);
      streams_[lane].queue.push_back(i);
    }
  }

  device_run take() {
    std::size_t done = 0;
    while (done < operations_.size()) {
      start_ready();
      set_rates();
      advance();
      done += end_finished();
    }
    result_.time = seconds(now_);
    note_last_wait();
    return std::move(result_);
  }

 private:
  struct stream {
    std::vector<std::size_t> queue;
    std::size_t next = 0;
    bool runs = false;
    double latency = 0;    // of a transfer, before its bytes move
    double remaining = 0;  // seconds of work, or bytes
    double rate = 1;
    std::size_t current() const { return queue[next]; }
  };

  bool is_ready(const device_operation& op) const {
    return std::all_of(op.after.begin(), op.after.end(), [&](int other) {
      return result_.end[static_cast<std::size_t>(other)] >= seconds();
    });
  }

  void start_ready() {
    for (auto& s : streams_) {
      if (s.runs || s.next == s.queue.size() || !is_ready(operations_[s.current()])) continue;
      const auto& op = operations_[s.current()];
      s.runs = true;
      result_.start[s.current()] = seconds(now_);
      if (&s == &streams_.front()) note_wait(s.current());
      const bool transfers = op.transfer != nullptr && op.transfer->moves();
      const double bytes = transfers ? op.buffer_bytes * op.transfer->bytes_a_byte : 0;
      s.latency = transfers ? op.transfer->latency.of(bytes).value() : 0;
      s.remaining = transfers ? bytes : op.work.value();
    }
  }

  /// The compute stream was idle until now: for the latest of what the operation comes after.
  void note_wait(std::size_t number) {
    const double idle = now_ - computed_until_;
    if (idle <= 0) return;
    int latest = -1;
    for (const int other : operations_[number].after) {
      const auto i = static_cast<std::size_t>(other);
      if (latest < 0 || result_.end[i] > result_.end[static_cast<std::size_t>(latest)])
        latest = other;
    }
    const auto kind = operations_[latest < 0 ? number : static_cast<std::size_t>(latest)].kind;
    result_.waits[static_cast<std::size_t>(kind)] += seconds(idle);
  }

  void note_last_wait() {
    const double idle = now_ - computed_until_;
    if (idle <= 0) return;
    const auto last =
        std::max_element(result_.end.begin(), result_.end.end()) - result_.end.begin();
    const auto kind = operations_[static_cast<std::size_t>(last)].kind;
    result_.waits[static_cast<std::size_t>(kind)] += seconds(idle);
  }

  static bool moves(const stream& s, const device_operation& op) {
    return s.runs && s.latency <= 0 && op.transfer != nullptr && op.transfer->moves();
  }

  void set_rates() {
    std::vector<flow_demand> demands;
    std::vector<stream*> moving;
    double slowdown = 1;
    for (auto& s : streams_) {
      if (!s.runs || &s == &streams_.front()) continue;
      const auto& op = operations_[s.current()];
      if (op.transfer == nullptr || !op.transfer->moves()) continue;
      if (op.slows_kernels) slowdown = std::max(slowdown, device_.slowdown(op.transfer->transport));
      if (!moves(s, op)) continue;
      demands.push_back(links_.demand(*op.transfer));
      moving.push_back(&s);
    }
    const auto rates = max_min_rates(links_.capacities(), demands);
    for (std::size_t i = 0; i < moving.size(); ++i) moving[i]->rate = rates[i];
    if (!streams_.empty()) streams_.front().rate = 1 / slowdown;
  }

  double time_left(const stream& s) const {
    if (!s.runs) return never_ends;
    if (s.latency > 0) return s.latency;
    return s.remaining > 0 ? s.remaining / s.rate : 0;
  }

  void advance() {
    double step = never_ends;
    for (const auto& s : streams_) step = std::min(step, time_left(s));
    if (step == never_ends) throw std::logic_error("operations wait for each other");
    for (auto& s : streams_) {
      if (!s.runs) continue;
      const bool ends = time_left(s) <= step;
      if (s.latency > 0) {
        s.latency = ends ? 0 : s.latency - step;
      } else {
        s.remaining = ends ? 0 : s.remaining - step * s.rate;
      }
    }
    now_ += step;
  }

  std::size_t end_finished() {
    std::size_t ended = 0;
    for (auto& s : streams_) {
      if (!s.runs || s.latency > 0 || s.remaining > 0) continue;
      const auto number = s.current();
      result_.end[number] = seconds(now_);
      if (&s == &streams_.front()) {
        computed_until_ = now_;
        result_.busy[static_cast<std::size_t>(operations_[number].kind)] +=
            result_.end[number] - result_.start[number];
      }
      s.runs = false;
      ++s.next;
      ++ended;
    }
    return ended;
  }

  const device_profile& device_;
  std::span<const device_operation> operations_;
  shared_links links_;
  std::vector<stream> streams_;
  device_run result_;
  double now_ = 0;
  double computed_until_ = 0;
};

}  // namespace

device_run run_alike(const device_profile& device, std::span<const device_operation> operations,
                     int kinds) {
  return runner(device, operations, kinds).take();
}

}  // namespace attnsim
