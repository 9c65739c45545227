#include "report/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "formats/drawing.hpp"
#include "model/error.hpp"
#include "report/chart.hpp"

namespace attnsim::report {
namespace {

const char* colour_of(op_kind kind) {
  return is_communication(kind) ? colour::communication
         : is_kernel(kind)      ? colour::compute
                                : colour::other;
}

std::string lane_name(const recorded_pass& pass, const std::string& stream) {
  return pass.run.empty() ? stream : fmt::format("{} {}", stream, pass.run);
}

/// A lane for each stream and run that has operations; those of one stream are neighbours.
std::vector<std::string> lanes_of(const std::vector<recorded_pass>& passes) {
  std::vector<std::string> lanes;
  const auto add = [&](const std::string& stream) {
    for (const auto& pass : passes) {
      const auto name = lane_name(pass, stream);
      if (std::find(lanes.begin(), lanes.end(), name) == lanes.end()) lanes.push_back(name);
    }
  };
  for (const auto& pass : passes) {
    std::set<int> used;
    for (const auto& op : pass.program.program) used.insert(op.stream);
    for (const int stream : used) add(pass.program.streams[static_cast<std::size_t>(stream)]);
  }
  return lanes;
}

std::size_t lane_of(const std::vector<std::string>& lanes, const recorded_pass& pass, int stream) {
  const auto name = lane_name(pass, pass.program.streams[static_cast<std::size_t>(stream)]);
  return static_cast<std::size_t>(std::find(lanes.begin(), lanes.end(), name) - lanes.begin());
}

seconds end_of(const std::vector<recorded_pass>& passes) {
  seconds end;
  for (const auto& pass : passes) end = std::max(end, pass.start + pass.times.duration());
  return end;
}

/// Of a stream of the slowest rank: attention kernels, other local operations, communication.
std::array<seconds, 3> busy_times(const recorded_pass& pass, std::size_t stream) {
  std::array<seconds, 3> busy;
  for (const auto& i : pass.times.slowest().intervals) {
    const auto& op = pass.program.program[i.operation];
    if (static_cast<std::size_t>(op.stream) != stream) continue;
    busy[is_communication(op.kind) ? 2 : is_kernel(op.kind) ? 0 : 1] += i.end - i.start;
  }
  return busy;
}

constexpr int most_drawn = 4000;  ///< intervals side by side

struct drawn_interval {
  std::size_t lane = 0;
  op_kind kind{};
  double start = 0, end = 0;
  std::size_t operations = 1;
};

/// Neighbours of one kind become one where their gap is below `resolution`.
void add_to(std::vector<drawn_interval>& drawn, const drawn_interval& next, double resolution) {
  const auto before = std::find_if(drawn.rbegin(), drawn.rend(),
                                   [&](const auto& d) { return d.lane == next.lane; });
  const bool joins = before != drawn.rend() && before->kind == next.kind &&
                     next.start - before->end < resolution && next.end - next.start < resolution;
  if (!joins) return drawn.push_back(next);
  before->end = next.end;
  ++before->operations;
}

struct summary {
  std::size_t count = 0;
  seconds first, last, busy;

  void add(seconds start, seconds end) {
    if (count++ == 0) first = start;
    last = end;
    busy += end - start;
  }
};

/// Share of its capacity that every link carried, over all passes.
std::vector<double> mean_use(const network& net, const std::vector<recorded_pass>& passes) {
  std::vector<double> use(net.links().size());
  seconds total;
  for (const auto& pass : passes) total += pass.times.duration();
  for (const auto& pass : passes) {
    for (std::size_t l = 0; l < use.size(); ++l) {
      const int load = pass.times.load_of[l];
      if (load < 0) continue;
      use[l] += pass.times.links[static_cast<std::size_t>(load)].utilisation *
                (pass.times.duration() / total);
    }
  }
  return use;
}

/// "gpu", "leaf", or the user's own label.
std::string kind_of(const vertex& v) {
  return v.label.empty() ? std::string(v.tier) : v.label;
}

}  // namespace

section breakdown(const std::vector<recorded_pass>& passes) {
  section s{.title = "Where the time goes",
            .note =
                "Streams of the rank that ends last. What the compute stream waits is exposed "
                "communication; communication beside it is hidden.",
            .rows = table(
                {"stream", "attention", "merge, convert, accumulate", "communication", "exposed"})};
  auto rows = json::array();
  for (const auto& pass : passes) {
    const auto& rank = pass.times.slowest();
    for (std::size_t stream = 0; stream < pass.program.streams.size(); ++stream) {
      const auto [kernels, local, moves] = busy_times(pass, stream);
      const auto exposed = stream == 0 ? rank.end - kernels - local - moves : seconds{};
      const auto total = kernels + local + moves + exposed;
      if (total == seconds{}) continue;
      const auto label = fmt::format("{}{}: {}", pass.run.empty() ? "" : pass.run + " ",
                                     name_of(pass.program.pass), pass.program.streams[stream]);
      rows.push_back({{"label", label},
                      {"values", {kernels.value(), local.value(), moves.value(), exposed.value()}},
                      {"total", total.value()}});
      s.rows.add(
          {label, to_string(kernels), to_string(local), to_string(moves), to_string(exposed)});
    }
  }
  s.chart = {
      {"kind", "bars"},
      {"unit", "s"},
      {"series",
       {series("attention", colour::compute), series("merge, convert, accumulate", colour::other),
        series("communication", colour::communication),
        series("exposed communication", colour::waiting)}},
      {"rows", rows}};
  return s;
}

section critical_rank(const std::vector<recorded_pass>& passes) {
  section s{.title = "Timeline of the critical rank",
            .note =
                "The rank that ends last. Drag over a part to enlarge it, or use the wheel on the "
                "chart that has the focus, or two fingers; + and - zoom, page keys move, Home "
                "shows all, arrow keys walk through the operations.",
            .rows = table({"stream", "operation", "count", "first start", "last end", "busy"})};
  const auto lanes = lanes_of(passes);
  const auto total = end_of(passes).value();
  auto marks = json::array(), intervals = json::array();
  std::vector<drawn_interval> drawn;
  std::map<std::pair<std::size_t, op_kind>, summary> summaries;
  for (const auto& pass : passes) {
    marks.push_back({{"name", name_of(pass.program.pass)}, {"at", pass.start.value()}});
    for (const auto& i : pass.times.slowest().intervals) {
      const auto& op = pass.program.program[i.operation];
      const auto lane = lane_of(lanes, pass, op.stream);
      const auto start = pass.start + i.start, end = pass.start + i.end;
      add_to(drawn, {lane, op.kind, start.value(), end.value()}, total / most_drawn);
      summaries[{lane, op.kind}].add(start, end);
    }
  }
  for (const auto& d : drawn) {
    intervals.push_back({{"lane", d.lane},
                         {"name", name_of(d.kind)},
                         {"colour", colour_of(d.kind)},
                         {"start", d.start},
                         {"end", d.end},
                         {"operations", d.operations}});
  }
  for (const auto& [key, sum] : summaries) {
    s.rows.add({lanes[key.first], std::string(name_of(key.second)), fmt::format("{}", sum.count),
                to_string(sum.first), to_string(sum.last), to_string(sum.busy)});
  }
  s.chart = {{"kind", "timeline"}, {"unit", "s"},  {"lanes", lanes},
             {"marks", marks},     {"end", total}, {"intervals", intervals}};
  return s;
}
section link_utilisation(const cluster& c, const std::vector<recorded_pass>& passes) {
  section s{.title = "Link utilisation",
            .note =
                "Share of its capacity that each link carried over the whole time, the busier "
                "direction of each cable.",
            .rows = table({"from -> to", "links", "each", "mean", "busiest", "its share"})};
  const auto& net = c.network;
  const auto use = mean_use(net, passes);
  struct group {
    std::size_t links = 0;
    double sum = 0;
    link_id busiest = 0;
  };
  std::map<std::pair<std::string, double>, group> groups;
  for (link_id l = 0; l < use.size(); ++l) {
    const auto& one = net.links()[l];
    auto& g = groups[{
        fmt::format("{} -> {}", kind_of(net.vertices()[one.from]), kind_of(net.vertices()[one.to])),
        one.capacity.value()}];
    if (g.links++ == 0 || use[l] > use[g.busiest]) g.busiest = l;
    g.sum += use[l];
  }
  std::vector<std::pair<std::pair<std::string, double>, group>> sorted(groups.begin(),
                                                                       groups.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
    return use[a.second.busiest] > use[b.second.busiest];
  });
  for (const auto& [key, g] : sorted) {
    s.rows.add({key.first, fmt::format("{}", g.links), to_string(bandwidth(key.second)),
                percent(g.sum / static_cast<double>(g.links)), net.name(g.busiest, " -> "),
                percent(use[g.busiest])});
  }
  try {
    s.drawing = formats::draw_svg(c, use);
  } catch (const input_error&) {
    s.note += " Too many parts to draw.";
  }
  return s;
}

}  // namespace attnsim::report
