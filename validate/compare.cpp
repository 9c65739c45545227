#include "validate/compare.hpp"

#include <map>

namespace attnsim::validate {
namespace {

std::string pattern_of(const schedule& s, const operation& op) {
  return std::string(name_of(op.kind)) + ' ' + s.streams[static_cast<std::size_t>(op.stream)];
}

/// By pattern: the mean over ranks of the time of its operations.
std::map<std::string, seconds> communication(const schedule& s, const timeline& t) {
  std::map<std::string, seconds> times;
  for (const auto& op : s.program) {
    if (is_communication(op.kind)) times[pattern_of(s, op)];
  }
  for (const int c : t.class_of) {
    for (const auto& span : t.ranks[static_cast<std::size_t>(c)].intervals) {
      const auto& op = s.program[span.operation];
      if (!is_communication(op.kind)) continue;
      times[pattern_of(s, op)] += (span.end - span.start) / static_cast<double>(t.class_of.size());
    }
  }
  return times;
}

}  // namespace

double part_time::error() const {
  if (predicted == measured) return 0;
  return (predicted - measured) / measured;
}

std::vector<part_time> compare(const schedule& s, const timeline& predicted,
                               const timeline& measured) {
  const auto &slowest = predicted.slowest(), &slowest_measured = measured.slowest();
  std::vector<part_time> parts{{"total", slowest.end, slowest_measured.end},
                               {"compute", slowest.compute, slowest_measured.compute},
                               {"exposed communication", slowest.exposed_communication(),
                                slowest_measured.exposed_communication()}};
  const auto measured_times = communication(s, measured);
  for (const auto& [name, time] : communication(s, predicted)) {
    parts.push_back({name, time, measured_times.at(name)});
  }
  return parts;
}

}  // namespace attnsim::validate
