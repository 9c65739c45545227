// What a transfer costs the kernel beside it, which kernels a transfer waits for, and how runs begin on idle devices.
#include "calibrate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "calibrate/overlap.hpp"
#include "calibrate/predicted.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

class interference_fits {
 public:
  explicit interference_fits(fitting& f)
      : f_(f),
        knows_launches_(f.profile().idle_start.launch > seconds()),
        before_begin_(before_begin()) {}

  /// The launches are known from sequences or the prior, else they are told here together with the clocks. What a kernel takes
  /// alone is told from what it took beside transfers only together with what these cost it: each round takes the last one's
  /// costs off. They converge, as short transfers cost less than those that tell the slowdown.
  void run() {
    constexpr int rounds = 30;
    for (int round = 0; round < rounds; ++round) {
      const auto idle = kernels_from_idle();
      lost_a_second_.clear();
      for (const auto& [kind, list] : slowdowns(idle))
        if (list.size() >= enough_overlaps)
          lost_a_second_[kind] = 1 - 1 / std::max(1.0, median(list));
      launch_ = launch_of(idle).value_or(launch_);
    }
    const auto idle = kernels_from_idle();
    fit_idle_start(idle);
    fit_slowdowns(idle);
    find_residuals();
  }

 private:
  using times_from_idle = std::vector<std::pair<kernel_point, double>>;
  static constexpr std::size_t enough_overlaps = 4;

  /// The time of a kernel on idle devices with nothing beside it: the shortest seen, less what a transfer cost it. No less than in
  /// a row, where nothing is launched from idle: where calls in a row take as long (the device's power limit), the shortest
  /// was not disturbed.
  times_from_idle kernels_from_idle() const {
    struct shortest_seen {
      double time = 0, lost = 0;
    };
    std::vector<std::pair<kernel_point, shortest_seen>> shortest;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto& set) {
      const bool beside_transfer =
          set.on && p.transfer.channels == 0 && p.order == launch_order::communication_first;
      const double lost =
          beside_transfer ? lost_a_second(flow_of(p.transfer, *set.on).transport) * beside(m) : 0;
      const shortest_seen seen{executed(p, m), lost};
      for (auto& [known, least] : shortest) {
        if (known != p.kernel) continue;
        if (seen.time < least.time) least = seen;
        return;
      }
      shortest.emplace_back(p.kernel, seen);
    });
    times_from_idle times;
    for (const auto& [kernel, seen] : shortest) {
      const double least = std::min(seen.time, in_a_row(kernel).value_or(seen.time));
      times.emplace_back(kernel, std::max(seen.time - seen.lost, least));
    }
    return times;
  }

  std::optional<double> in_a_row(const kernel_point& kernel) const {
    std::optional<double> time;
    f_.each<kernel_point>([&](const auto& p, const auto& m, const auto&) {
      if (p == kernel) time = m.median();
    });
    return time;
  }

  /// From its begin to its end, where the launches are known; else also its launch.
  double executed(const overlap_point& p, const measurement& m) const {
    const auto& start = f_.profile().idle_start;
    const double first = std::max(0.0, start.launch.value() - before_begin_.value_or(0));
    const double launch = p.order == launch_order::compute_first ? first : start.next.value();
    return m.median("kernel_s") - (knows_launches_ ? launch : 0);
  }

  /// Of a kernel that is launched first.
  std::optional<double> before_begin() const {
    std::vector<double> found;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto&) {
      if (is_long(m) && p.order == launch_order::compute_first)
        found.push_back(m.median() - m.median("kernel_s"));
    });
    return found.empty() ? std::nullopt : std::optional(median(found));
  }

  double lost_a_second(link_kind kind) const {
    const auto found = lost_a_second_.find(kind);
    return found == lost_a_second_.end() ? 0 : found->second;
  }

  /// How long a kernel ran beside a transfer that was launched before it.
  double beside(const measurement& m) const {
    const double after_launches = m.median("transfer_s") - launch_.communication - launch_.kernel;
    return std::clamp(after_launches, 0.0, std::max(0.0, m.median("kernel_s") - launch_.kernel));
  }

  /// The kernel ends last.
  static bool is_long(const measurement& m) {
    return m.median("transfer_s") <= 0.8 * m.median("kernel_s");
  }

  struct launches {
    double kernel = 0, communication = 0;
  };

  std::optional<launches> launch_of(const times_from_idle& idle) const {
    const auto& start = f_.profile().idle_start;
    if (knows_launches_) return launches{start.launch.value(), start.launch_communication.value()};
    std::vector<double> both;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto&) {
      if (is_long(m) && p.order == launch_order::communication_first)
        both.push_back(m.median() - m.median("kernel_s"));
    });
    if (!before_begin_ || both.empty()) return std::nullopt;
    return launches{*before_begin_ + first_call(kernels_in_a_row(idle)),
                    std::max(0.0, median(both) - *before_begin_)};
  }

  void fit_idle_start(const times_from_idle& idle) {
    std::size_t used = 0;
    f_.each<overlap_point>([&](const auto&, const auto& m, const auto&) {
      if (is_long(m)) ++used;
    });
    const auto found = launch_of(idle);
    if (!found) return f_.kept("idle_start", "no overlaps with long kernels");
    fit_boosts(kernels_in_a_row(idle));
    if (knows_launches_) return;
    auto& start = f_.profile().idle_start;
    start.launch = seconds(found->kernel);
    start.launch_communication = seconds(found->communication);
    f_.fitted("idle_start.launch", to_string(start.launch), used);
    f_.fitted("idle_start.launch_communication", to_string(start.launch_communication), used);
  }

  struct kernel_times {
    std::string kernel;
    double in_a_row, from_idle;
  };
  std::vector<kernel_times> kernels_in_a_row(const times_from_idle& idle) const {
    std::vector<kernel_times> result;
    f_.each<kernel_point>([&](const auto& p, const auto& m, const auto&) {
      for (const auto& [known, time] : idle) {
        if (known == p) result.push_back({p.kernel, m.median(), time});
      }
    });
    return result;
  }

  /// Calls in a row can meet the device's power limit.
  void fit_boosts(const std::vector<kernel_times>& kernels) {
    std::map<std::string, std::vector<double>> ratios;
    for (const auto& k : kernels) ratios[k.kernel].push_back(k.in_a_row / k.from_idle);
    for (const auto& [name, list] : ratios) {
      auto& kernel = f_.kernel(name);
      kernel.boost = std::max(1.0, median(list));
      f_.fitted(fmt::format("kernel {} boost", kernel.name), fmt::format("{:.3f}", kernel.boost),
                list.size());
    }
  }

  /// What the first call on an idle device takes longer than one behind another.
  double first_call(const std::vector<kernel_times>& kernels) const {
    std::vector<double> longer;
    for (const auto& k : kernels)
      longer.push_back(k.from_idle - k.in_a_row / f_.kernel(k.kernel).boost);
    return longer.empty() ? 0 : std::max(0.0, median(longer));
  }

  using lists_by_kind = std::map<link_kind, std::vector<double>>;

  lists_by_kind slowdowns(const times_from_idle& idle) const {
    lists_by_kind found;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.transfer.channels > 0 || p.order == launch_order::compute_first) return;
      const double alone = std::find_if(idle.begin(), idle.end(), [&](const auto& k) {
                             return k.first == p.kernel;
                           })->second;
      const double kernel = executed(p, m), together = beside(m);
      const double lost =
          kernel - alone;  // together x (1 - 1 / slowdown), as sim/kernel_run has it
      constexpr double enough = 0.1;
      if (together > enough * kernel && lost < 0.5 * together)
        found[flow_of(p.transfer, *set.on).transport].push_back(together / (together - lost));
    });
    return found;
  }

  void fit_slowdowns(const times_from_idle& idle) {
    auto found = slowdowns(idle);
    std::map<std::pair<std::string, pass_kind>, std::vector<double>> waits;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto& set) {
      if (set.on && p.transfer.channels == 0 && p.order == launch_order::compute_first)
        waits[{p.kernel.kernel, p.kernel.pass}].push_back(m.median("transfer_s") /
                                                          m.median("kernel_s"));
    });
    for (const auto kind :
         {link_kind::nvlink, link_kind::pcie, link_kind::host_memory, link_kind::network}) {
      const auto name = fmt::format("transports.{}.slowdown", name_of(kind));
      const auto& list = found[kind];
      if (list.size() < enough_overlaps) {
        f_.kept(name, "no overlaps that tell it");
        continue;
      }
      f_.profile().transports[static_cast<int>(kind)].slowdown = std::max(1.0, median(list));
      f_.fitted(name, fmt::format("{:.3f}", std::max(1.0, median(list))), list.size(),
                fmt::format(", half between {:.3f} and {:.3f}", quantile(list, 0.25),
                            quantile(list, 0.75)));
    }
    for (const auto& [key, list] : waits) set_scheduling(key.first, key.second, list);
  }

  /// A transfer launched second ends before the kernel only where it gets in between thread blocks.
  void set_scheduling(const std::string& name, pass_kind pass, const std::vector<double>& waits) {
    auto& kernel = f_.kernel(name);
    if (const auto* before = f_.prior.find_kernel(name); before && before->basis == basis::measured)
      return f_.kept(fmt::format("kernel {} occupancy, {}", kernel.name, name_of(pass)),
                     "the kernel's own");
    const auto found = median(waits) < 0.9 ? block_scheduling::waves : block_scheduling::persistent;
    (pass == pass_kind::forward ? kernel.scheduling : kernel.backward_scheduling) = found;
    f_.fitted(fmt::format("kernel {} occupancy, {}", kernel.name, name_of(pass)),
              found == block_scheduling::waves ? "waves" : "persistent", waits.size(),
              fmt::format(", a transfer launched second ends at {:.2f} of the kernel (median)",
                          median(waits)));
  }

  /// Of what the profile makes of them.
  void find_residuals() {
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto& set) {
      if (!set.on) return;
      const auto predicted = simulated(p, f_.measured_on(set)).total;
      f_.overlap_residuals.push_back(std::abs(predicted.value() / m.median() - 1));
    });
  }

  fitting& f_;
  bool knows_launches_;
  std::optional<double> before_begin_;
  std::map<link_kind, double>
      lost_a_second_;  ///< of a kernel's time, for each second beside a transfer
  launches launch_;
};

}  // namespace

void fit_interference(fitting& f) {
  interference_fits(f).run();
}

}  // namespace attnsim
