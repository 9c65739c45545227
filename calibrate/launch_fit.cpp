// What a run from idle devices takes: of the host to launch its operations, the first ones and those behind, of the device between the
// events that time them, of links until they are awake.
#include "calibrate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "calibrate/predicted.hpp"
#include "calibrate/sequence.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

class launch_fits {
 public:
  explicit launch_fits(fitting& f) : f_(f) {}

  void run() {
    fit_host("idle_start.next", sequence_kind::casts, &idle_start_profile::next);
    fit_host("idle_start.next_communication", sequence_kind::exchanges,
             &idle_start_profile::next_communication);
    fit_first();
    fit_calls();
    fit_gaps();
    fit_graphs();
    fit_wakes();
    fit_uncertainty();
  }

 private:
  using found_times = std::map<int, double>;  // by count

  static found_times times_of(const measurement_set& set, sequence_kind operations,
                              sequence_start start, const char* sample) {
    found_times times;
    for (const auto& m : set.data.points) {
      const auto* p = std::get_if<sequence_point>(&m.what);
      if (p && p->operations == operations && p->start == start && m.rounds() > 0)
        times[p->count] = m.median(sample);
    }
    return times;
  }

  /// With each operation, from the shortest sequence to the longest.
  static std::optional<double> growth(const found_times& times) {
    if (times.size() < 2) return std::nullopt;
    const auto [least, first] = *times.begin();
    const auto [most, last] = *times.rbegin();
    return (last - first) / (most - least);
  }

  std::vector<double> growths(sequence_kind operations, sequence_start start,
                              const char* sample) const {
    std::vector<double> found;
    for (const auto& set : f_.sets) {
      if (const auto one = growth(times_of(set, operations, start, sample))) found.push_back(*one);
    }
    return found;
  }

  void keep(const char* name) { f_.kept(name, "no sequences of two lengths"); }

  void set(const char* name, seconds idle_start_profile::*field, const std::vector<double>& found) {
    if (found.empty()) return keep(name);
    auto& value = f_.profile().idle_start.*field;
    value = seconds(std::max(0.0, median(found)));
    f_.fitted(name, to_string(value), found.size());
  }

  void fit_host(const char* name, sequence_kind operations, seconds idle_start_profile::*field) {
    set(name, field, growths(operations, sequence_start::idle, "launch_s"));
  }

  /// What the host takes longer for the first of a kind than for those behind it.
  void fit_first() {
    const auto& start = f_.profile().idle_start;
    const double local = start.next.value(), communication = start.next_communication.value();
    const auto longer = [&](sequence_kind operations, double each) {
      std::vector<double> found;
      for (const auto& set : f_.sets) {
        const auto times = times_of(set, operations, sequence_start::idle, "launch_s");
        if (times.size() > 1) found.push_back(times.begin()->second - times.begin()->first * each);
      }
      return found;
    };
    const auto raised = [](std::vector<double> list, double by) {
      for (auto& one : list) one += by;
      return list;
    };
    set("idle_start.launch", &idle_start_profile::launch,
        raised(longer(sequence_kind::casts, local), local));
    auto first = raised(longer(sequence_kind::exchanges, communication), communication);
    const auto beside = raised(longer(sequence_kind::both, (local + communication) / 2),
                               local + communication - start.launch.value());
    first.insert(first.end(), beside.begin(), beside.end());
    set("idle_start.launch_communication", &idle_start_profile::launch_communication, first);
  }

  /// Of short ones: of long calls there is one a sample, behind a pause.
  static void add_launch(std::vector<double>& list, const measurement& m) {
    constexpr double shorter = 200e-6;
    if (m.samples.contains("launch_s") && m.median() < shorter)
      list.push_back(m.median("launch_s"));
  }

  void fit_calls() {
    std::vector<double> memory;
    f_.each<memory_point>([&](const auto&, const auto& m, const auto&) { add_launch(memory, m); });
    set("idle_start.call", &idle_start_profile::call, memory);
    struct launches {
      std::vector<double> forward, backward, few_rows;
    };
    std::map<std::string, launches> of_kernels;
    f_.each<kernel_point>([&](const auto& p, const auto& m, const auto&) {
      auto& of = of_kernels[p.kernel];
      add_launch(p.pass == pass_kind::backward ? of.backward
                 : has_few_rows(p)             ? of.few_rows
                                               : of.forward,
                 m);
    });
    for (const auto& [name, of] : of_kernels) {
      const auto points = of.forward.size() + of.backward.size() + of.few_rows.size();
      if (points == 0) continue;
      auto& host = f_.kernel(name).host;
      const auto set_to = [](seconds& time, const std::vector<double>& list) {
        if (!list.empty()) time = seconds(median(list));
      };
      set_to(host.forward, of.forward);
      set_to(host.backward, of.backward);
      set_to(host.few_rows, of.few_rows);
      f_.fitted(fmt::format("kernel {} host", name),
                fmt::format("{} forward, {} backward, {} of few rows", to_string(host.forward),
                            to_string(host.backward), to_string(host.few_rows)),
                points);
    }
  }

  void fit_gaps() {
    const double cast =
        f_.profile().memory_time(byte_count(memory_traffic(sequence_point().cast()))).value();
    auto local = growths(sequence_kind::casts, sequence_start::ahead, "time_s");
    for (auto& time : local) time -= cast;
    set("idle_start.gap", &idle_start_profile::gap, local);
    std::vector<double> communication;
    for (const auto& set : f_.sets) {
      if (!set.on) continue;
      const auto fitted = f_.measured_on(set);
      const double exchange = predicted_time(sequence_point().exchange(), fitted).value();
      const double gap = fitted.device.idle_start.gap.value();
      const auto of = [&](sequence_kind operations) {
        return growth(times_of(set, operations, sequence_start::graph, "time_s"));
      };
      if (const auto each = of(sequence_kind::exchanges)) communication.push_back(*each - exchange);
      if (const auto each = of(sequence_kind::both))
        communication.push_back(2 * *each - cast - gap - exchange);
    }
    set("idle_start.gap_communication", &idle_start_profile::gap_communication, communication);
  }

  /// What sequences of casts take longer as graphs than ahead, where the first has a gap before it, too.
  void fit_graphs() {
    const double gap = f_.profile().idle_start.gap.value();
    std::vector<double> found;
    for (const auto& set : f_.sets) {
      const auto ahead = times_of(set, sequence_kind::casts, sequence_start::ahead, "time_s");
      for (const auto& [count, time] :
           times_of(set, sequence_kind::casts, sequence_start::graph, "time_s")) {
        if (ahead.contains(count)) found.push_back(time - ahead.at(count) + gap);
      }
    }
    set("idle_start.graph_launch", &idle_start_profile::graph_launch, found);
  }

  /// What the shortest sequence of exchanges takes longer than the rest of the profile has it, where messages take longer than their
  /// launches: behind those links wake unseen. Graphs of such short messages hardly tell it: 0 to 20 us, where schedules take 20.
  void fit_wakes() {
    std::map<link_kind, std::vector<double>> found;
    for (const auto& set : f_.sets) {
      if (!set.on) continue;
      auto fitted = f_.measured_on(set);
      const auto kind = flow_of(sequence_point().exchange(), fitted).transport;
      fitted.device.transports[static_cast<int>(kind)].wake = {};
      const auto measured = times_of(set, sequence_kind::exchanges, sequence_start::idle, "time_s");
      constexpr double longer = 1.5;
      const auto each = growth(measured);
      if (!each || *each < longer * f_.profile().idle_start.next_communication.value()) continue;
      const auto [count, time] = *measured.begin();
      const auto rest = simulated(
          {.operations = sequence_kind::exchanges, .count = count, .start = sequence_start::idle},
          fitted);
      found[kind].push_back(time - rest.value());
    }
    for (const auto& [kind, list] : found) {
      auto& wake = f_.profile().transports[static_cast<int>(kind)].wake;
      wake = seconds(std::max(0.0, median(list)));
      f_.fitted(fmt::format("transports.{}.wake", name_of(kind)), to_string(wake), list.size());
    }
  }

  /// Nine of ten samples from idle devices are within it.
  void fit_uncertainty() {
    std::vector<double> spreads;
    f_.each<sequence_point>([&](const auto& p, const auto& m, const auto&) {
      if (p.start != sequence_start::idle || m.rounds() < 3) return;
      std::vector<double> off;
      for (const double t : m.samples.at("time_s")) off.push_back(std::abs(t / m.median() - 1));
      spreads.push_back(quantile(off, 0.9));
    });
    if (spreads.empty()) return keep("idle_start.uncertainty");
    auto& found = f_.profile().idle_start.uncertainty;
    found = std::min(1.0, median(spreads));
    f_.fitted("idle_start.uncertainty", percent(found), spreads.size());
  }

  fitting& f_;
};

}  // namespace

void fit_launches(fitting& f) {
  launch_fits(f).run();
}

}  // namespace attnsim
