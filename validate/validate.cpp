#include "validate/validate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>

#include "ask/predict.hpp"
#include "kernels/backends.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/spelling.hpp"
#include "sim/simulator.hpp"
#include "validate/random_memory.hpp"
#include "validate/transports/inprocess.hpp"
#include "validate/transports/mpi.hpp"
#include "validate/transports/nccl.hpp"

namespace attnsim::validate {
namespace {

/// What all ranks of a process share.
struct pass_plan {
  pass_plan(const validation_request& r, const strategy& s, pass_kind pass)
      : question(r.on, r.problem, s, pass) {
    for (int rank = 0; rank < r.ranks; ++rank) times.push_back(local_times(question, rank));
  }

  placed_schedule question;
  std::vector<std::vector<seconds>> times;  ///< of local operations, by rank
};

struct plan {
  explicit plan(const validation_request& r)
      : request(r), chosen(complete(r.chosen, r.problem, r.ranks)), expected(r.problem) {
    for (const auto pass : passes_of(r.pass)) {
      passes.push_back(std::make_unique<pass_plan>(r, chosen, pass));
    }
    if (r.pass == pass_kind::backward && expected.samples() && computes()) {
      throw input_error(asked("pass"), "backward",
                        "expected forward or both: backward starts from forward's results, which "
                        "the reference is too slow for at this size");
    }
  }

  bool computes() const { return request.checks && request.emulates != emulation::waits; }

  const validation_request& request;
  strategy chosen;
  oracle expected;
  std::vector<std::unique_ptr<pass_plan>> passes;
};

/// One rank's part in a validation.
class rank_run {
 public:
  rank_run(const plan& p, transport& t)
      : plan_(p),
        transport_(t),
        device_(kernels::make_device(
            p.request.kernel, {.local_rank = t.local_rank(), .local_ranks = t.local_ranks()})) {}

  validation run() {
    validation v{.rank = transport_.rank(), .chosen = plan_.chosen};
    for (const auto& p : plan_.passes) v.passes.push_back(run_pass(*p));
    return v;
  }

 private:
  pass_validation run_pass(const pass_plan& p) {
    const auto& i = p.question;
    const auto kind = plan_.request.emulates;
    emulated_backend emulated(*device_, kind, p.times[static_cast<std::size_t>(transport_.rank())]);
    const bool plain = kind == emulation::none;
    executor runs(i.work(), transport_, plain ? *device_ : emulated, plain ? nullptr : &emulated);
    pass_validation v{
        .pass = i.program().pass, .program = i.program(), .computed = plan_.computes()};
    v.predicted_peak = peak_memory(i.work()).peak;
    if (!plan_.request.checks) {
      time(v, i.work(), runs);
      return v;
    }
    auto first = runs.run(inputs());
    v.measured_peak = largest(first.peak_memory);
    const auto mode = plan_.request.mode;
    if (mode == launch_mode::graph) first = runs.run(inputs(), mode);
    if (v.computed) v.numbers = check(v.pass, first.results);
    std::move(first.results.begin(), first.results.end(), std::back_inserter(saved_));
    if (plain) {
      for (int n = 0; n < warm_ups; ++n) runs.run(inputs(), mode);
    }
    measure(v, [&] { return runs.run(inputs(), mode).times; });
    return v;
  }

  /// Wake links that went to sleep, and let the ranks meet.
  static constexpr int warm_ups = 2;

  /// Until there are enough.
  void measure(pass_validation& v, const std::function<timeline()>& run_once) {
    std::vector<timeline> runs;
    while (!are_enough(v.durations, plan_.request.repeats)) {
      runs.push_back(run_once());
      v.durations.push_back(runs.back().duration());
    }
    v.stopped_early = stopped_early(v.durations, plan_.request.repeats);
    v.measured = median(std::move(runs));
  }

  void time(pass_validation& v, const workload& work, executor& runs) {
    byte_count largest;
    for (const auto& b : work.program().buffers) {
      if (b.resident) largest = std::max(largest, work.bytes(b));
    }
    const random_memory input(*device_, static_cast<std::size_t>(largest.value()));
    const auto mode = plan_.request.mode;
    for (int n = 0; n < warm_ups; ++n) runs.time(input.data());
    if (mode == launch_mode::graph) runs.time(input.data(), mode);
    measure(v, [&] { return runs.time(input.data(), mode); });
  }

  /// Backward starts from what forward left. What is made serves all runs: making it takes longer than a run.
  shard_source inputs() {
    return [this](tensor what, const token_set& tokens, const head_range& heads, data_type type) {
      for (const auto* known : {&saved_, &made_}) {
        for (const auto& s : *known) {
          if (s.what == what && s.tokens == tokens && s.heads == heads) return s;
        }
      }
      return made_.emplace_back(make(what, tokens, heads, type));
    };
  }

  shard make(tensor what, const token_set& tokens, const head_range& heads, data_type type) const {
    if (plan_.computes()) return plan_.expected.make(what, tokens, heads, type);
    const auto shape = shape_of(plan_.request.problem, what, head_count(what, heads), size(tokens));
    return {what, tokens, heads, type, std::vector<std::byte>(dense_bytes(type, shape))};
  }

  byte_count largest(byte_count own) {
    const auto value = own.value();
    blob data(sizeof value);
    std::memcpy(data.data(), &value, sizeof value);
    auto most = value;
    for (const auto& one : transport_.share(data)) {
      auto other = value;
      std::memcpy(&other, one.data(), sizeof other);
      most = std::max(most, other);
    }
    return byte_count(most);
  }

  numerics check(pass_kind pass, const std::vector<shard>& results) {
    const auto own = plan_.expected.compare(results);
    blob data(own.size() * sizeof(tensor_error));
    std::memcpy(data.data(), own.data(), data.size());
    std::vector<tensor_error> all;
    for (const auto& one : transport_.share(data)) {
      const auto before = all.size();
      all.resize(before + one.size() / sizeof(tensor_error));
      std::memcpy(all.data() + before, one.data(), one.size());
    }
    return plan_.expected.judge(pass, all);
  }

  static timeline median(std::vector<timeline> runs) {
    const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
    std::nth_element(runs.begin(), middle, runs.end(),
                     [](const auto& a, const auto& b) { return a.duration() < b.duration(); });
    return std::move(*middle);
  }

  const plan& plan_;
  transport& transport_;
  std::unique_ptr<kernels::backend> device_;
  std::vector<shard> saved_, made_;
};

void add(part_time& sum, const part_time& part) {
  sum.name = part.name;
  sum.predicted += part.predicted;
  sum.measured += part.measured;
}

void add_prediction(const plan& p, validation& v) {
  for (std::size_t i = 0; i < v.passes.size(); ++i) {
    auto& pass = v.passes[i];
    pass.predicted = simulate(p.passes[i]->question, {.record = true});
    pass.parts = compare(pass.program, pass.predicted, pass.measured);
    add(v.total, pass.parts[0]);
    add(v.compute, pass.parts[1]);
    add(v.exposed_communication, pass.parts[2]);
    v.passed = v.passed && (!pass.computed || pass.numbers.passed);
  }
}

void check_request(const validation_request& r) {
  require_possible(r.kernel, r.transport);
  if (r.mode == launch_mode::graph && !kernels::find_backend(r.kernel).has_graphs)
    throw input_error(asked("kernel"), r.kernel, "its devices have no graphs");
}

}  // namespace

void require_possible(const std::string& kernel, const std::string& transport) {
  const auto& b = kernels::find_backend(kernel);
  const std::vector<std::string> known{"inprocess", "mpi", "nccl"};
  if (std::find(known.begin(), known.end(), transport) == known.end())
    throw input_error(asked("transport"), transport, expected_one_of(transport, known));
  if (!b.runs_with(transport))
    throw input_error(
        asked("kernel"), kernel,
        fmt::format("runs with transport {}, not {}", fmt::join(b.transports, ", "), transport));
}

validation validate(const validation_request& r, transport& t) {
  check_request(r);
  if (t.ranks() != r.ranks) {
    throw input_error(asked("ranks"), std::to_string(r.ranks),
                      fmt::format("the {} ranks of the job", t.ranks()));
  }
  const plan p(r);
  auto v = rank_run(p, t).run();
  add_prediction(p, v);
  return v;
}

validation validate(const validation_request& r) {
  check_request(r);
  if (r.transport == "mpi") return validate(r, *join_mpi(r.time_out));
  if (r.transport == "nccl")
    return validate(r, *join_nccl({.time_out = r.time_out, .blocking = true}, find_place()));
  const plan p(r);
  validation v;
  run_in_process(r.ranks, r.time_out, [&](transport& t) {
    auto own = rank_run(p, t).run();
    if (t.rank() == 0) v = std::move(own);
  });
  add_prediction(p, v);
  return v;
}

}  // namespace attnsim::validate
