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
      if (op.transfer != nullptr && number_.try_emplace(op.transfer, number_.size()).second)
        transfers_.push_back(op.transfer);
    }
    struct use {
      link_id link;
      std::size_t transfer;
      double weight;
    };
    std::vector<use> uses;
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      for (const auto& u : transfers_[t]->uses) uses.push_back({u.link, t, u.weight});
    }
    std::stable_sort(uses.begin(), uses.end(),
                     [](const use& a, const use& b) { return a.link < b.link; });
    std::vector<double> load;
    for (auto u = uses.begin(); u != uses.end();) {
      load.assign(transfers_.size(), 0);
      const auto link = u->link;
      for (; u != uses.end() && u->link == link; ++u) load[u->transfer] += u->weight;
      add(load);
    }
    for (std::size_t t = 0; t < transfers_.size(); ++t) demands_.push_back(demand(t));
    capacities_.assign(loads_.size(), 1.0);
  }

  std::size_t number_of(const group_transfer* t) const { return number_.at(t); }

  /// Bytes a second of transfers that move at the same time, by their numbers.
  const std::vector<double>& rates(const std::vector<std::size_t>& moving) {
    const auto [known, is_new] = rates_.try_emplace(moving);
    if (!is_new) return known->second;
    std::vector<flow_demand> demands;
    for (const auto t : moving) demands.push_back(demands_[t]);
    return known->second = max_min_rates(capacities_, demands);
  }

 private:
  flow_demand demand(std::size_t number) const {
    flow_demand d;
    for (std::size_t l = 0; l < loads_.size(); ++l) {
      const double weight = loads_[l][number];
      if (weight > 0) d.path.push_back({static_cast<link_id>(l), weight});
    }
    const double least = transfers_[number]->least_seconds_a_byte;
    if (least > 0) d.rate_limit = 1 / least;
    return d;
  }

  static bool outdoes(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x >= y; });
  }
  void add(const std::vector<double>& load) {
    for (const auto& known : loads_) {
      if (outdoes(known, load)) return;
    }
    std::erase_if(loads_, [&](const auto& known) { return outdoes(load, known); });
    loads_.push_back(load);
  }

  std::map<const group_transfer*, std::size_t> number_;
  std::vector<const group_transfer*> transfers_;
  std::vector<std::vector<double>> loads_;
  std::vector<flow_demand> demands_;
  std::vector<double> capacities_;  ///< a second of one link's time is its capacity
  std::map<std::vector<std::size_t>, std::vector<double>> rates_;
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

  void set_rates() {
    moving_.clear();
    moving_transfers_.clear();
    double slowdown = 1;
    for (auto& s : streams_) {
      if (!s.runs || &s == &streams_.front()) continue;
      const auto& op = operations_[s.current()];
      if (op.transfer == nullptr || !op.transfer->moves()) continue;
      if (op.slows_kernels) slowdown = std::max(slowdown, device_.slowdown(op.transfer->transport));
      if (s.latency > 0) continue;
      moving_.push_back(&s);
      moving_transfers_.push_back(links_.number_of(op.transfer));
    }
    if (!moving_.empty()) {
      const auto& rates = links_.rates(moving_transfers_);
      for (std::size_t i = 0; i < moving_.size(); ++i) moving_[i]->rate = rates[i];
    }
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
  std::vector<stream*> moving_;                // that share links now
  std::vector<std::size_t> moving_transfers_;  // theirs, by number
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
