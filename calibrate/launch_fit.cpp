// What a run from idle devices takes for each operation after its first ones: of the host to launch it, and of the device between
// the events that time it.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "calibrate/fitting.hpp"
#include "calibrate/predicted.hpp"
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
    fit_gaps();
    fit_graphs();
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

  void fit_gaps() {
    const double cast =
        f_.profile().memory_time(byte_count(memory_traffic(sequence_point().cast()))).value();
    auto local = growths(sequence_kind::casts, sequence_start::ahead, "time_s");
    for (auto& time : local) time -= cast;
    set("idle_start.gap", &idle_start_profile::gap, local);
    std::vector<double> communication;
    for (const auto& set : f_.sets) {
      if (!set.on) continue;
      auto fitted = *set.on;
      fitted.device = f_.profile();
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
