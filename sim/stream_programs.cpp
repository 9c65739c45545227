#include "sim/stream_programs.hpp"

#include <algorithm>
#include <stdexcept>

#include "model/cost/host_time.hpp"

namespace attnsim {
namespace {

int find_or_add(std::vector<lane>& lanes, const lane& wanted) {
  const auto found = std::find_if(lanes.begin(), lanes.end(), [&](const lane& l) {
    return l.pattern == wanted.pattern && l.stream == wanted.stream;
  });
  const auto place = found - lanes.begin();
  if (found == lanes.end()) lanes.push_back(wanted);
  return static_cast<int>(place);
}

double bytes_of(const placed_schedule& i, std::size_t op, int pattern) {
  if (i.communication().flows(pattern) == 0) return 0;
  return i.sent_bytes(op, i.communication().members(pattern, 0).front());
}

}  // namespace

stream_programs::stream_programs(const placed_schedule& i) : streams(i.program().streams.size()) {
  if (streams.size() > most_streams) throw std::logic_error("a schedule has at most 8 streams");
  // The branches of a graph have no streams to share.
  if (i.chosen().start != run_start::idle_graph)
    queues = static_cast<std::uint32_t>(i.on().device.queues);
  const auto& program = i.program().program;
  for (std::size_t number = 0; number < program.size(); ++number) {
    const auto& op = program[number];
    stream_operation laid_out{.operation = static_cast<std::uint32_t>(number),
                              .kernel = is_kernel(op.kind),
                              .gap = to_picoseconds(gap_before(i, number).value())};
    std::copy(op.needs.begin(), op.needs.end(), laid_out.needs.begin());
    if (const int pattern = i.communication().pattern_of(number); pattern >= 0) {
      const auto parts = i.communication().parts_of(pattern);
      const auto lane_of = [&](int part) {
        return find_or_add(
            lanes, {part, static_cast<std::uint32_t>(op.stream), i.communication().channels(part),
                    i.communication().transport(part)});
      };
      laid_out.lane = lane_of(parts.first);
      for (int p = 1; p < parts.count; ++p) lane_of(parts.first + p);
      laid_out.lanes = parts.count;
      laid_out.rounds = parts.rounds;
      laid_out.wake = to_picoseconds(wake_before(i, number).value());
      laid_out.bytes = bytes_of(i, number, pattern);
      laid_out.stretch =
          stretch(i.work(), op, i.on().device.transport(i.communication().transport(pattern)));
    }
    streams[static_cast<std::size_t>(op.stream)].push_back(laid_out);
  }
  run_ahead = std::any_of(lanes.begin(), lanes.end(),
                          [&](const lane& l) { return i.communication().runs_ahead(l.pattern); });
}

}  // namespace attnsim
