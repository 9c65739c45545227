// Can the check fail, and does timing matter? Every communication operation corrupted, every
// operation dropped, dependent operations swapped: each must show in the numbers. Random delays in
// messages and kernels must not: so the derived dependencies are enough.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "model/schedule/algorithms/schedules.hpp"
#include "tests/validate/small_runs.hpp"

namespace attnsim::validate {
namespace disturbed_runs_test {

using kernels::stream_id;

/// Channels that call `before` and `after` in stream order around each operation.
class disturbed_channel final : public channel {
 public:
  using hook = std::function<void(const std::string& what, std::span<const payload>)>;

  disturbed_channel(std::unique_ptr<channel> inner, kernels::backend& device, stream_id stream,
                    hook before, hook after)
      : inner_(std::move(inner)),
        device_(device),
        stream_(stream),
        before_(std::move(before)),
        after_(std::move(after)) {}

  void send_receive(const std::string& what, int to, int from,
                    std::span<const payload> p) override {
    around(what, p, [&] { inner_->send_receive(what, to, from, p); });
  }
  void all_gather(const std::string& what, std::span<const payload> p) override {
    around(what, p, [&] { inner_->all_gather(what, p); });
  }
  void reduce_scatter(const std::string& what, std::span<const payload> p) override {
    around(what, p, [&] { inner_->reduce_scatter(what, p); });
  }
  void all_to_all(const std::string& what, std::span<const payload> p) override {
    around(what, p, [&] { inner_->all_to_all(what, p); });
  }
  void all_reduce(const std::string& what, std::span<const payload> p) override {
    around(what, p, [&] { inner_->all_reduce(what, p); });
  }

 private:
  template <typename F>
  void around(const std::string& what, std::span<const payload> p, F operation) {
    const std::vector<payload> copy(p.begin(), p.end());
    device_.call(stream_, [=, this] { before_(what, copy); });
    operation();
    device_.call(stream_, [=, this] { after_(what, copy); });
  }

  std::unique_ptr<channel> inner_;
  kernels::backend& device_;
  stream_id stream_;
  hook before_, after_;
};

class disturbed_transport final : public transport {
 public:
  disturbed_transport(transport& inner, disturbed_channel::hook before,
                      disturbed_channel::hook after)
      : inner_(inner), before_(std::move(before)), after_(std::move(after)) {}

  std::string_view name() const override { return inner_.name(); }
  int rank() const override { return inner_.rank(); }
  int ranks() const override { return inner_.ranks(); }
  using transport::open;
  std::unique_ptr<channel> open(kernels::backend& device, stream_id stream,
                                const std::vector<int>& group, int nccl_channels) override {
    return std::make_unique<disturbed_channel>(inner_.open(device, stream, group, nccl_channels),
                                               device, stream, before_, after_);
  }
  std::vector<blob> share(const blob& own) override { return inner_.share(own); }
  double clock_offset() override { return inner_.clock_offset(); }

 private:
  transport& inner_;
  disturbed_channel::hook before_, after_;
};

void nothing(const std::string&, std::span<const payload>) {}

struct small_case {
  const char* schedule;
  int rows, cols;
  kv_order order = kv_order::direct;
  reduction_kind reduction = reduction_kind::ring;
};

constexpr small_case cases[] = {
    {"ring", 3, 1},
    {"attention2d", 2, 2},
    {"attention2d", 2, 2, kv_order::transposed},
    {"attention2d", 2, 3, kv_order::direct, reduction_kind::all_to_all},
    {"attention2d-overlap", 2, 3},
    {"attention2d-overlap", 2, 2, kv_order::transposed},
    {"mesh", 2, 3},
};
constexpr pass_kind passes[] = {pass_kind::forward, pass_kind::backward};

/// Full masks, so that every element of every message matters.
attention problem_of(const small_case& c) {
  return {.heads = 2,
          .kv_heads = 1,
          .head_dim = 8,
          .sequence = 8 * c.rows * c.cols,
          .mask = mask_kind::full,
          .dtype = data_type::fp32};
}

strategy strategy_of(const small_case& c) {
  return {.schedule = c.schedule,
          .rows = c.rows,
          .cols = c.cols,
          .tokens = token_layout::striped,
          .order = c.order,
          .reduction = c.reduction};
}

/// Calls f(schedule, problem, oracle) for each case and pass.
template <typename F>
void for_each_case(F f) {
  for (const auto& c : cases) {
    const auto a = problem_of(c);
    const oracle expected(a);
    for (const auto pass : passes) {
      const auto s = strategy_of(c);
      SCOPED_TRACE(label(s, a, pass));
      f(make_schedule(s, a, pass), a, expected);
    }
  }
}

std::string name_in_errors(const schedule& s, std::size_t op) {
  return "operation " + std::to_string(op) + " (" + std::string(name_of(s.program[op].kind)) + ")";
}

bool passes_check(const schedule& s, const attention& a, const oracle& expected,
                  const disturbance& d = {}) {
  return run_small(s, a, token_layout::striped, expected, d).numbers.passed;
}

TEST(disturbed_runs, a_corrupted_message_fails) {
  int corrupted = 0;
  for_each_case([&](const schedule& s, const attention& a, const oracle& expected) {
    for (std::size_t op = 0; op < s.program.size(); ++op) {
      if (!is_communication(s.program[op].kind)) continue;
      std::atomic<bool> happened = false;
      const auto corrupt = [&](const std::string& what, std::span<const payload> parts) {
        if (what != name_in_errors(s, op)) return;
        happened = true;
        auto* element = static_cast<float*>(parts.back().to);
        *element += 3;
      };
      const auto one_rank = [&](transport& t) -> std::unique_ptr<transport> {
        return std::make_unique<disturbed_transport>(
            t, nothing, t.rank() == 1 ? disturbed_channel::hook(corrupt) : nothing);
      };
      const bool passed = passes_check(s, a, expected, {.of_transport = one_rank});
      EXPECT_EQ(passed, !happened) << name_in_errors(s, op);
      corrupted += happened;
    }
  });
  EXPECT_GT(corrupted, 50);
}

TEST(disturbed_runs, a_dropped_operation_fails) {
  for_each_case([&](const schedule& s, const attention& a, const oracle& expected) {
    for (std::size_t op = 0; op < s.program.size(); ++op) {
      auto less = s;
      less.program.erase(less.program.begin() + static_cast<std::ptrdiff_t>(op));
      derive_needs(less);
      EXPECT_FALSE(passes_check(less, a, expected)) << name_in_errors(s, op);
    }
  });
}

/// Whether an operation adds to what it writes: two such may change places.
bool accumulates(const operation& op) {
  return std::any_of(op.writes.begin(), op.writes.end(),
                     [&](const operand& w) { return contains(op.reads, w.what); }) &&
         is_kernel(op.kind);
}

/// Whether `later` reads what `earlier` writes, the whole of it in the same place.
bool feeds(const operation& earlier, const operation& later) {
  return std::any_of(earlier.writes.begin(), earlier.writes.end(), [&](const operand& w) {
    return std::any_of(later.reads.begin(), later.reads.end(), [&](const operand& r) {
      return r.buffer == w.buffer && r.first_slot == w.first_slot && r.slots == w.slots;
    });
  });
}

TEST(disturbed_runs, swapped_operations_fail) {
  int swapped = 0;
  for_each_case([&](const schedule& s, const attention& a, const oracle& expected) {
    for (std::size_t op = 0; op + 1 < s.program.size(); ++op) {
      const auto &first = s.program[op], &second = s.program[op + 1];
      if (!feeds(first, second) || (accumulates(first) && accumulates(second))) continue;
      auto other = s;
      std::swap(other.program[op], other.program[op + 1]);
      derive_needs(other);
      EXPECT_FALSE(passes_check(other, a, expected)) << name_in_errors(s, op);
      ++swapped;
    }
  });
  EXPECT_GT(swapped, 20);
}

/// Sleeps up to 2 ms before some operations.
class hesitation {
 public:
  explicit hesitation(unsigned seed) : random_(seed) {}

  void operator()() {
    const std::unique_lock lock(mutex_);
    const auto time = std::chrono::microseconds(random_() % 3 == 0 ? random_() % 2000 : 0);
    std::this_thread::sleep_for(time);
  }

 private:
  std::mutex mutex_;
  std::mt19937 random_;
};

/// Kernels that begin late.
class hesitant_backend final : public forwarding_backend {
 public:
  hesitant_backend(kernels::backend& inner, unsigned seed)
      : forwarding_backend(inner), pause_(std::make_shared<hesitation>(seed)) {}

  void forward(stream_id s, const kernels::forward_arguments& a) override {
    call(s, [p = pause_] { (*p)(); });
    inner().forward(s, a);
  }
  void backward(stream_id s, const kernels::backward_arguments& a) override {
    call(s, [p = pause_] { (*p)(); });
    inner().backward(s, a);
  }
  void cast(stream_id s, const token_shape& shape, const device_tensor& destination,
            const device_tensor& source) override {
    call(s, [p = pause_] { (*p)(); });
    inner().cast(s, shape, destination, source);
  }

 private:
  std::shared_ptr<hesitation> pause_;
};

TEST(disturbed_runs, delays_change_nothing) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    for_each_case([&](const schedule& s, const attention& a, const oracle& expected) {
      const disturbance late{
          .of_transport = [&](transport& t) -> std::unique_ptr<transport> {
            const auto first = std::make_shared<hesitation>(seed * 100 + unsigned(t.rank()));
            const auto pause = [first](const std::string&, std::span<const payload>) {
              (*first)();
            };
            return std::make_unique<disturbed_transport>(t, pause, pause);
          },
          .of_backend = [&](kernels::backend& b, int rank) -> std::unique_ptr<kernels::backend> {
            return std::make_unique<hesitant_backend>(b, seed * 1000 + unsigned(rank));
          }};
      EXPECT_TRUE(passes_check(s, a, expected, late)) << "seed " << seed;
    });
  }
}

}  // namespace disturbed_runs_test
}  // namespace attnsim::validate
