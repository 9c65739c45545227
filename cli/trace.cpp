#include "cli/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace attnsim::cli {
namespace {

/// Whole nanoseconds, so that what follows never overlaps what was before; the format counts
/// microseconds.
std::int64_t nanoseconds(seconds time) {
  return std::llround(time.value() * 1e9);
}
double microseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e3;
}

std::string names_of(const operands& list) {
  std::string text;
  for (const auto& o : list) {
    if (!text.empty()) text += ' ';
    text += name_of(o.what);
  }
  return text;
}

/// Those whose load is worth a line: the most utilised come first in a timeline.
constexpr std::size_t most_links = 32;

}  // namespace

int trace::process(const std::string& name, const std::vector<std::string>& streams) {
  const auto known = std::find(processes_.begin(), processes_.end(), name);
  if (known != processes_.end()) return static_cast<int>(known - processes_.begin()) + 1;
  processes_.push_back(name);
  const auto pid = static_cast<int>(processes_.size());
  const auto describe = [&](const char* what, int tid, const json& arguments) {
    events_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", arguments}});
  };
  describe("process_name", 0, {{"name", name}});
  describe("process_sort_index", 0, {{"sort_index", pid}});
  for (std::size_t s = 0; s < streams.size(); ++s) {
    describe("thread_name", static_cast<int>(s) + 1, {{"name", streams[s]}});
  }
  return pid;
}

void trace::add(const std::string& run, const schedule& program, const timeline& t,
                seconds offset) {
  for (std::size_t c = 0; c < t.ranks.size(); ++c) {
    const auto& rank = t.ranks[c];
    const auto alike = std::count(t.class_of.begin(), t.class_of.end(), static_cast<int>(c));
    const auto others = alike > 1 ? fmt::format(" and {} like it", alike - 1) : "";
    const int pid = process(fmt::format("{} rank {}{}", run, rank.rank, others), program.streams);
    for (const auto& i : rank.intervals) {
      const auto& op = program.program[i.operation];
      const auto start = nanoseconds(offset + i.start), end = nanoseconds(offset + i.end);
      events_.push_back({{"ph", "X"},
                         {"name", name_of(op.kind)},
                         {"cat", is_communication(op.kind) ? "communication" : "compute"},
                         {"pid", pid},
                         {"tid", op.stream + 1},
                         {"ts", microseconds(start)},
                         {"dur", microseconds(end - start)},
                         {"args",
                          {{"pass", name_of(program.pass)},
                           {"operation", i.operation},
                           {"reads", names_of(op.reads)},
                           {"writes", names_of(op.writes)}}}});
    }
  }
}

void trace::add_links(const network& net, const timeline& t, seconds offset) {
  const int pid = process("links", {});
  for (std::size_t l = 0; l < std::min(t.links.size(), most_links); ++l) {
    const auto& load = t.links[l];
    const auto name = net.name(load.link, "->") +
                      (load.links > 1 ? fmt::format(" and {} like it", load.links - 1) : "");
    const auto sample = [&](seconds since, double rate) {
      events_.push_back({{"ph", "C"},
                         {"name", name},
                         {"pid", pid},
                         {"ts", microseconds(nanoseconds(offset + since))},
                         {"args", {{"GB/s", rate / 1e9}}}});
    };
    for (const auto& change : load.samples) sample(change.since, change.rate);
    if (!load.samples.empty()) sample(t.duration(), 0);
  }
}

std::string trace::str() const {
  return json{{"displayTimeUnit", "ns"}, {"traceEvents", events_}}.dump() + "\n";
}

}  // namespace attnsim::cli
