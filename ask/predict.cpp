#include "ask/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/cost/host_time.hpp"
#include "model/cost/kernel.hpp"
#include "model/named.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"
#include "sim/simulator.hpp"

namespace attnsim {
namespace {

constexpr double most_of_the_time = 0.5;

constexpr name_table<prediction_method, 2> methods{
    {{prediction_method::simulation, "simulation"}, {prediction_method::analytic, "analytic"}}};

/// A pattern's operations send the same from every rank that takes part.
void count_bytes(const placed_schedule& i, pass_prediction& p) {
  const auto& t = i.communication();
  std::vector<std::int64_t> of_pattern(static_cast<std::size_t>(t.patterns()));
  for (std::size_t op = 0; op < i.program().program.size(); ++op) {
    const int pattern = t.pattern_of(op);
    if (pattern < 0 || t.flows(pattern) == 0) continue;
    const int sender = t.members(pattern, 0)[0];
    of_pattern[static_cast<std::size_t>(pattern)] +=
        i.work().bytes_sent(i.program().program[op], sender).value();
  }
  double total = 0;
  for (int rank = 0; rank < i.ranks(); ++rank) {
    std::int64_t bytes = 0;
    for (int pattern = 0; pattern < t.patterns(); ++pattern) {
      if (t.sent(pattern, rank) >= 0) bytes += of_pattern[static_cast<std::size_t>(pattern)];
    }
    p.most_bytes_sent = std::max(p.most_bytes_sent, byte_count(bytes));
    total += static_cast<double>(bytes);
  }
  p.mean_bytes_sent = total / i.ranks();
}

void use_estimate(const placed_schedule& i, pass_prediction& p) {
  const auto e = estimate(i);
  p.time = e.time;
  p.compute = e.compute;
  p.exposed_communication = e.exposed_communication();
  p.kernels = kernels_of(i, e.rank);
  const double share = e.compute / e.time;
  const bool computes = share >= most_of_the_time || i.ranks() == 1;
  p.bottleneck = {computes ? "compute" : "communication", i.on().device.name,
                  computes ? share : 1 - share};
}

double computing_share(const rank_timeline& r, const timeline& t) {
  return t.duration() > seconds() ? r.compute / t.duration() : 1;
}

/// Who computes for most of the time, if anyone does: the rank that ends last or, where shares of work are unequal, the one
/// that computes longest, for which it waits more than for any link. Null: no one.
const rank_timeline* computing_rank(const timeline& t) {
  if (computing_share(t.slowest(), t) >= most_of_the_time || t.links.empty()) return &t.slowest();
  const auto& busiest =
      *std::max_element(t.ranks.begin(), t.ranks.end(),
                        [](const auto& x, const auto& y) { return x.compute < y.compute; });
  const double share = computing_share(busiest, t);
  return share >= std::max(most_of_the_time, t.links.front().utilisation) ? &busiest : nullptr;
}

void use_timeline(const placed_schedule& i, const timeline& t, pass_prediction& p) {
  p.time = t.duration();
  p.compute = t.slowest().compute;
  p.exposed_communication = t.slowest().exposed_communication();
  p.kernels = kernels_of(i, t.slowest().rank);
  p.bottleneck = find_bottleneck(i, t);
  if (const auto* rank = computing_rank(t)) p.computing_elsewhere = rank->compute - p.compute;
}

/// Of the least certain transport that the schedule uses.
double communication_uncertainty(const placed_schedule& i) {
  double most = 0;
  for (int pattern = 0; pattern < i.communication().patterns(); ++pattern) {
    const auto transport = i.communication().transport(pattern);
    most = std::max(most, i.on().device.communication_uncertainty(transport));
  }
  return most;
}

/// Two streams exchange messages, not all with the same peers.
bool has_several_peers(const placed_schedule& i) {
  const auto& program = i.program().program;
  std::set<int> streams, peers;
  for (std::size_t op = 0; op < program.size(); ++op) {
    const bool ring = is_collective(program[op].kind) && program[op].kind != op_kind::all_to_all;
    if (ring || !is_communication(program[op].kind)) continue;
    streams.insert(program[op].stream);
    peers.insert(i.communication().pattern_of(op));
  }
  return streams.size() > 1 && peers.size() > 1;
}

/// By how much longer than predicted exchanges with several peers may take.
double lost_among_several_peers(const placed_schedule& i) {
  double most = 0;
  for (int pattern = 0; pattern < i.communication().patterns(); ++pattern) {
    const auto transport = i.communication().transport(pattern);
    most = std::max(most, i.on().device.transport(transport).several_peers);
  }
  return most > 0 && has_several_peers(i) ? most : 0;
}

/// Of what the executor's host takes until a run that starts idle is under way.
seconds uncertain_launches(const placed_schedule& i) {
  const auto& idle = i.on().device.idle_start;
  switch (i.chosen().start) {
    case run_start::in_sequence:
      return {};
    case run_start::idle_graph:
      return idle.uncertainty * idle.graph_launch;
    default:
      return idle.uncertainty *
             (i.ranks() > 1 ? idle.launch + idle.launch_communication : idle.launch);
  }
}

/// Of the first kernel of the first rank: whether rows are few is a question of the problem.
double kernel_uncertainty(const placed_schedule& i) {
  const auto& program = i.program().program;
  const auto first = std::find_if(program.begin(), program.end(),
                                  [](const auto& op) { return is_kernel(op.kind); });
  const auto compute = i.on().device.uncertainty.compute;
  if (first == program.end()) return compute;
  const double own = i.costs().uncertainty(static_cast<std::size_t>(first - program.begin()), 0);
  return own > 0 ? own : compute;
}

void set_interval(const placed_schedule& i, pass_prediction& p) {
  const auto device = p.compute + p.exposed_communication;
  const auto computing = p.compute + p.computing_elsewhere;
  const auto& of_device = i.on().device.uncertainty;
  const double of_kernels = kernel_uncertainty(i);
  const double of_computing = i.ranks() > 1 ? std::max(of_kernels, of_device.overlap) : of_kernels;
  const auto uncertain = computing * of_computing +
                         (device - computing) * communication_uncertainty(i) +
                         uncertain_launches(i);
  const auto lost = (device - computing) * lost_among_several_peers(i);
  const auto of_host = i.on().host.uncertainty;
  p.low = std::max(device - uncertain, p.host * (1 - of_host));
  const bool for_long = i.chosen().start == run_start::in_sequence;
  const auto throttled = computing * (for_long ? i.on().device.uncertainty.sustained : 0);
  p.high = std::max(p.time, device) + uncertain + lost + throttled + p.host * of_host;
}

/// A framework's host launches: the pass takes longer than the device by itself, of which everything else is said.
void wait_for_host(const placed_schedule& i, prediction_method by, const pass_simulator& simulated,
                   pass_prediction& p) {
  p.host = host_time(i);
  if (p.host == seconds()) return;
  const auto device = p.time;
  p.time = by == prediction_method::simulation ? simulated(i).duration() : std::max(device, p.host);
  if (p.host > device) p.bottleneck = {"host", i.on().host.name, 1};
}

pass_prediction predict_pass(const placed_schedule& i, prediction_method by,
                             const pass_simulator& simulated) {
  pass_prediction p{.pass = i.program().pass, .memory = {}};
  count_bytes(i, p);
  if (by == prediction_method::analytic) {
    use_estimate(i, p);
  } else {
    const bool hosted = !i.on().host.name.empty();
    use_timeline(i, hosted ? simulate(i, {.launches = false}) : simulated(i), p);
  }
  wait_for_host(i, by, simulated, p);
  set_interval(i, p);
  return p;
}

/// One pass after the others.
void add(prediction& p, const pass_prediction& pass) {
  p.time += pass.time;
  p.low += pass.low;
  p.high += pass.high;
  p.compute += pass.compute;
  p.exposed_communication += pass.exposed_communication;
  p.host += pass.host;
  p.most_bytes_sent += pass.most_bytes_sent;
  p.mean_bytes_sent += pass.mean_bytes_sent;
  p.peak_memory = std::max(p.peak_memory, pass.memory.peak);
}

prediction_limit limit_of_passes(const prediction& p, const std::vector<int>& devices,
                                 known_limits& limits) {
  prediction_limit all;
  seconds longest;
  for (const auto& one : p.passes) {
    const auto limit = limits.of(p.chosen, devices, one.pass);
    all.time += limit.time;
    if (limit.time >= longest) all.bound_by = limit.bound_by;
    longest = std::max(longest, limit.time);
  }
  return all;
}

void warn_of_host(prediction& p, const cluster& c) {
  seconds launches, device;
  for (const auto& pass : p.passes) {
    if (pass.bottleneck.kind != "host") continue;
    launches += pass.host;
    device += pass.compute + pass.exposed_communication;
  }
  if (launches == seconds()) return;
  p.warnings.push_back(fmt::format(
      "host-bound: {} takes {} to launch what the device does in {}; CUDA graphs, longer "
      "sequences or fewer ranks",
      c.host.name, to_string(launches), to_string(device)));
}

/// A device that does not exist, and what the cluster's file guessed.
void warn_of_guesses(prediction& p, const cluster& c) {
  if (c.device.name == "ideal")
    p.warnings.push_back("device ideal: no real device computes at its peak; device names one");
  for (const auto& guess : c.assumed)
    p.warnings.push_back("assumed in the cluster's file: " + guess);
}

/// Few query rows a rank against more keys are read by a law of their own, whose figures may be no one's measurement.
void warn_of_assumed_split(prediction& p, const cluster& c) {
  const auto* kernel = c.device.kernel(p.chosen.kernel, p.problem.dtype);
  if (!kernel || kernel->split.assumed.empty()) return;
  if (p.problem.tokens(token_side::keys) <= p.problem.sequence) return;
  const auto places = find_algorithm(p.chosen.schedule).whole_queries
                          ? 1
                          : std::int64_t{p.chosen.rows} * p.chosen.cols;
  if (p.problem.sequence / places >= 2 * kernel->split.rows) return;
  p.warnings.push_back(fmt::format("kernel {}: its times of few query rows are assumed: {}",
                                   kernel->name, kernel->split.assumed));
}

/// Tables and laws are measured with one number of elements in all tensors.
void warn_of_head_dims(prediction& p) {
  const auto& a = p.problem;
  if (a.v_head_dim == 0) return;
  const auto mean = [&](pass_kind pass) {
    return mean_head_dim({.pass = pass, .head_dim = a.head_dim, .v_head_dim = a.v_head_dim});
  };
  p.warnings.push_back(
      fmt::format("heads of {} elements in keys and {} in values are timed as heads with as many "
                  "operations: {:g} "
                  "forward, {:g} backward",
                  a.head_dim, a.v_head_dim, mean(pass_kind::forward), mean(pass_kind::backward)));
}

/// Of a schedule's forward pass.
double imbalance_of(const priced_schedule& i) {
  const int ranks = i.program().grid.ranks();
  double most = 0, total = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    double work = 0;
    for (std::size_t op = 0; op < i.program().program.size(); ++op)
      work += i.costs().flops(op, rank).value();
    most = std::max(most, work);
    total += work;
  }
  return most * ranks / total;
}

void add_warnings(prediction& p, shared_work& work) {
  const auto& c = work.on();
  warn_of_assumed_split(p, c);
  warn_of_head_dims(p);
  warn_of_guesses(p, c);
  const auto warn_alone = [&](std::string text) {
    p.warnings.push_back(text);
    p.warnings_alone.push_back(std::move(text));
  };
  if (!p.feasible) {
    p.lacks = fmt::format("needs {} of the device's {} memory", to_string(p.peak_memory),
                          to_string(c.device.memory));
    warn_alone(p.lacks);
  }
  p.warnings.insert(p.warnings.end(), p.problem.notes.begin(), p.problem.notes.end());
  if (p.chosen.tensor_parallel > 1) {
    warn_alone(
        fmt::format("attention alone: the all-reduces that tp {} needs after it are not counted",
                    p.chosen.tensor_parallel));
  }
  if (p.problem.padding > 0) {
    auto computed = p.problem;
    computed.padding = 0;
    const double work = useful_operations(computed, pass_kind::forward) /
                        useful_operations(p.problem, pass_kind::forward);
    p.warnings.push_back(
        fmt::format("padding is {} of {} tokens; a kernel that computes it does {} more work",
                    p.problem.padding, p.problem.sequence, percent(work - 1)));
  }
  warn_of_host(p, c);
  const bool contiguous =
      p.problem.mask == mask_kind::causal && p.chosen.tokens == token_layout::contiguous;
  const bool may_differ = contiguous || !p.problem.documents.empty() || !p.problem.prefixes.empty();
  constexpr int most = 256;
  if (may_differ && p.chosen.rows * p.chosen.cols > 1 && p.ranks <= most) {
    const auto forward = work.schedule(p.problem, p.chosen, pass_kind::forward);
    const double imbalance = imbalance_of(*forward.priced);
    if (imbalance > 1.05) {
      p.warnings.push_back(
          fmt::format("unequal work: the rank with most has {:.2f} of the mean", imbalance));
    }
  }
}

}  // namespace

std::string_view name_of(prediction_method method) {
  return find_name(methods, method);
}
prediction_method parse_prediction_method(std::string_view text) {
  return find_value(methods, text);
}

double work_imbalance(const cluster& c, const attention& a, const strategy& s) {
  shared_work work(c);
  return imbalance_of(*work.schedule(a, s, pass_kind::forward).priced);
}

kernel_use kernels_of(const placed_schedule& i, int rank) {
  const auto& device = i.on().device;
  kernel_use use;
  flop_count work;
  for (std::size_t op = 0; op < i.program().program.size(); ++op) {
    if (!is_kernel(i.program().program[op].kind)) continue;
    use.calls += i.costs().calls(op, rank);
    use.time += i.costs().time(op, rank);
    work += i.costs().flops(op, rank);
  }
  use.launches = device.kernel_launch * use.calls;
  const auto dtype = i.work().problem().dtype;
  const auto highest =
      highest_rate(device, device.kernel(i.chosen().kernel, dtype), dtype, i.program().pass);
  if (use.calls > 0) use.share = work / highest / use.time;
  return use;
}

std::vector<pass_kind> passes_of(pass_kind pass) {
  if (pass == pass_kind::both) return {pass_kind::forward, pass_kind::backward};
  if (pass == pass_kind::recompute)
    return {pass_kind::forward, pass_kind::forward, pass_kind::backward};
  return {pass};
}

flop_count useful_operations(const attention& a, pass_kind pass) {
  double a_pair = 0;
  for (const auto one : {pass_kind::forward, pass_kind::backward}) {
    if (pass == one || pass == pass_kind::both || pass == pass_kind::recompute)
      a_pair += operations_a_pair(one, a.head_dim, a.value_dim());
  }
  return flop_count(a_pair * static_cast<double>(visible_pairs_of_batch(a)) *
                    static_cast<double>(a.heads));
}

bottleneck find_bottleneck(const placed_schedule& i, const timeline& t) {
  if (const auto* rank = computing_rank(t)) {
    const auto device = i.on().network.device(i.device_of(rank->rank));
    return {"compute", i.on().network.name(device), computing_share(*rank, t)};
  }
  const auto& link = t.links.front();
  const auto name = i.on().network.name(link.link, "->");
  constexpr double hardly_used = 0.3;
  if (link.utilisation < hardly_used) return {"latency", name, 1 - computing_share(t.slowest(), t)};
  return {std::string(name_of(i.on().network.links()[link.link].kind)), name, link.utilisation};
}

namespace {

enum class wanted { times, all };

prediction predict_passes(const attention& a, const strategy& s, int ranks, pass_kind pass,
                          prediction_method by, const pass_simulator& simulated, shared_work& work,
                          wanted what) {
  const auto& c = work.on();
  check(a);
  check(a, pass);
  require_peak(c.device, a.dtype);
  require_pass(s, pass);
  prediction p{.cluster = c.name,
               .ranks = ranks,
               .by = by,
               .chosen = complete(s, a, ranks),
               .problem = a,
               .pass = pass};
  const auto& placed = work.ranks(p.chosen);
  for (const auto one : passes_of(pass)) {
    const auto earlier = std::find_if(p.passes.begin(), p.passes.end(),
                                      [&](const auto& other) { return other.pass == one; });
    if (earlier != p.passes.end()) {
      p.passes.push_back(*earlier);
    } else {
      const auto known = work.schedule(a, p.chosen, one);
      p.passes.push_back(predict_pass({placed, p.chosen, known.priced}, by, simulated));
      if (what == wanted::all) p.passes.back().memory = known.memory();
    }
    add(p, p.passes.back());
  }
  return p;
}

/// All else that there is to say.
void complete(prediction& p, shared_work& work, known_limits& limits) {
  p.bottleneck =
      std::max_element(p.passes.begin(), p.passes.end(), [](const auto& x, const auto& y) {
        return x.time < y.time;
      })->bottleneck;
  p.rate_per_device = useful_operations(p.problem, p.pass) / p.time / p.ranks;
  p.feasible = p.peak_memory <= work.on().device.memory;
  p.limit = limit_of_passes(p, work.ranks(p.chosen).devices(), limits);
  add_warnings(p, work);
}

/// Keeps nothing but the latest.
pass_simulator plain_simulator() {
  return [latest = timeline()](const placed_schedule& i) mutable -> const timeline& {
    return latest = simulate(i);
  };
}

}  // namespace

prediction predict_times(const attention& a, const strategy& s, int ranks, pass_kind pass,
                         prediction_method by, shared_work& work) {
  return predict_passes(a, s, ranks, pass, by, plain_simulator(), work, wanted::times);
}

prediction predict(const attention& a, const strategy& s, int ranks, pass_kind pass,
                   prediction_method by, shared_work& work) {
  return predict(a, s, ranks, pass, by, plain_simulator(), work);
}

prediction predict(const attention& a, const strategy& s, int ranks, pass_kind pass,
                   prediction_method by, const pass_simulator& simulated, shared_work& work) {
  auto p = predict_passes(a, s, ranks, pass, by, simulated, work, wanted::all);
  complete(p, work, work.limits(a));
  return p;
}

prediction predict(const cluster& c, const attention& a, const strategy& s, int ranks,
                   pass_kind pass, prediction_method by, known_limits& limits) {
  shared_work work(c);
  auto p = predict_passes(a, s, ranks, pass, by, plain_simulator(), work, wanted::all);
  complete(p, work, limits);
  return p;
}

prediction predict(const cluster& c, const attention& a, const strategy& s, int ranks,
                   pass_kind pass, prediction_method by) {
  shared_work work(c);
  return predict(a, s, ranks, pass, by, work);
}

prediction predict(const cluster& c, const attention& a, const strategy& s, int ranks,
                   pass_kind pass, prediction_method by, const pass_simulator& simulated) {
  shared_work work(c);
  return predict(a, s, ranks, pass, by, simulated, work);
}

}  // namespace attnsim
