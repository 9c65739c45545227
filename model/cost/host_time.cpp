#include "model/cost/host_time.hpp"

#include <algorithm>

namespace attnsim {
namespace {

/// Row statistics are views or come with their output.
std::ptrdiff_t tensors(const operands& list) {
  return std::count_if(list.begin(), list.end(),
                       [](const operand& o) { return !is_statistic(o.what); });
}

seconds of_local(const placed_schedule& i, std::size_t index, int rank) {
  const auto& host = i.on().host;
  const auto& op = i.program().program[index];
  const auto calls = i.costs().memory(index, rank);
  const auto merge = i.chosen().merges == merge_kind::unfused ? host.merge : host.add;
  switch (op.kind) {
    case op_kind::attention:
      return i.costs().calls(index, rank) * host.attention + calls.additions * merge +
             (calls.count - calls.additions) * host.cast;
    case op_kind::attention_backward:
      return i.costs().calls(index, rank) * host.attention_backward + calls.additions * host.add +
             (calls.count - calls.additions) * host.cast;
    case op_kind::merge:
      return calls.additions * merge;
    case op_kind::weigh:
    case op_kind::sink:
    case op_kind::accumulate:
      return std::max(calls.additions, 1) * host.add;
    case op_kind::expand:
    case op_kind::copy:
      return static_cast<double>(tensors(op.writes)) *
             (changes_format(i.program(), op) ? host.cast : host.copy);
    default:
      return {};
  }
}

/// Tensors that are copied into one buffer are one message.
double messages(const placed_schedule& i, const operation& op) {
  const bool joined = i.chosen().copies.joined != framework_copies::joining::none;
  return joined ? 1 : static_cast<double>(op.reads.size());
}

seconds of_communication(const placed_schedule& i, const operation& op, int rank) {
  if (i.work().bytes_sent(op, rank) == byte_count()) return {};
  const auto& host = i.on().host;
  const auto tensors = static_cast<double>(op.reads.size());
  switch (op.kind) {
    case op_kind::all_gather:
      return tensors * host.all_gather;
    case op_kind::reduce_scatter:
      return tensors * host.reduce_scatter;
    case op_kind::all_to_all:
      return tensors * host.all_to_all;
    default:
      return host.exchange + messages(i, op) * host.exchanged_tensor;
  }
}

/// What an operation of `rank` takes longer than one of a single call that moves memory.
seconds of_more_calls(const placed_schedule& i, std::size_t op, int rank) {
  const auto call = i.on().device.idle_start.call;
  const auto kernels = i.costs().launches(op, rank);
  const int alike =
      i.costs().memory(op, rank).count + (kernels > seconds() ? 0 : i.costs().calls(op, rank));
  return kernels + (alike - 1) * call;
}

}  // namespace

std::vector<seconds> launch_times(const placed_schedule& i, int rank) {
  std::vector<seconds> times;
  const auto& host = i.on().host;
  if (host.name.empty()) return times;
  const auto& program = i.program().program;
  seconds now;
  for (std::size_t op = 0; op < program.size(); ++op) {
    now +=
        host.slowdown * (is_communication(program[op].kind) ? of_communication(i, program[op], rank)
                                                            : of_local(i, op, rank));
    times.push_back(now);
  }
  return times;
}

std::vector<seconds> idle_launch_times(const placed_schedule& i, int rank) {
  const auto start = i.chosen().start;
  std::vector<seconds> times;
  if (start == run_start::in_sequence) return times;
  const auto& host = i.on().device.idle_start;
  const bool graph = start == run_start::idle_graph;
  seconds now = graph ? host.graph_launch : seconds();
  auto local = host.launch, communication = host.launch_communication;
  const auto& program = i.program().program;
  for (std::size_t op = 0; op < program.size(); ++op) {
    const bool communicates = is_communication(program[op].kind);
    auto& own = communicates ? communication : local;
    if (!graph) now += communicates ? own : own + of_more_calls(i, op, rank);
    if (graph && op > 0) now += wake_before(i, op);
    own = communicates ? host.next_communication : host.next;
    times.push_back(now);
  }
  return times;
}

seconds wake_before(const placed_schedule& i, std::size_t op) {
  if (i.chosen().start == run_start::in_sequence) return {};
  const auto& program = i.program().program;
  const auto first = std::find_if(program.begin(), program.end(),
                                  [](const auto& o) { return is_communication(o.kind); });
  if (first - program.begin() != static_cast<std::ptrdiff_t>(op)) return {};
  return i.on()
      .device.transport(i.communication().transport(i.communication().pattern_of(op)))
      .wake;
}

seconds gap_before(const placed_schedule& i, std::size_t op) {
  if (i.chosen().start == run_start::in_sequence) return {};
  const auto& idle = i.on().device.idle_start;
  if (!is_communication(i.program().program[op].kind)) return idle.gap;
  return i.chosen().start == run_start::idle_graph ? idle.gap_communication : seconds();
}

seconds host_time(const placed_schedule& i, int rank) {
  const auto times = launch_times(i, rank);
  return times.empty() ? seconds() : times.back();
}

seconds host_time(const placed_schedule& i) {
  seconds most;
  for (const int rank : i.work().some_ranks(64)) most = std::max(most, host_time(i, rank));
  return most;
}

}  // namespace attnsim
