// What a transfer costs the kernel beside it, which kernels a transfer waits for, and how runs begin on idle devices.
#include "calibrate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calibrate/predicted.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

class interference_fits {
 public:
  explicit interference_fits(fitting& f) : f_(f) {}

  void run() {
    const auto idle = kernels_from_idle();
    fit_idle_start(idle);
    fit_slowdowns(idle);
  }

 private:
  using times_from_idle = std::vector<std::pair<kernel_point, double>>;

  /// The time of a kernel on idle devices with nothing beside it: the shortest seen.
  times_from_idle kernels_from_idle() const {
    times_from_idle shortest;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto&) {
      const double time = m.median("kernel_s");
      for (auto& [known, least] : shortest) {
        if (known == p.kernel) {
          least = std::min(least, time);
          return;
        }
      }
      shortest.emplace_back(p.kernel, time);
    });
    return shortest;
  }

  void fit_idle_start(const times_from_idle& idle) {
    std::vector<double> launch, both;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto&) {
      const double kernel = m.median("kernel_s"), total = m.median();
      if (m.median("transfer_s") > 0.8 * kernel) return;
      (p.order == launch_order::compute_first ? launch : both).push_back(total - kernel);
    });
    if (launch.empty() || both.empty())
      return f_.kept("idle_start", "no overlaps with long kernels");
    const auto kernels = kernels_in_a_row(idle);
    fit_boosts(kernels);
    auto& start = f_.profile().idle_start;
    start.launch = seconds(median(launch) + first_call(kernels));
    start.launch_communication = seconds(std::max(0.0, median(both) - median(launch)));
    f_.fitted("idle_start.launch", to_string(start.launch), launch.size());
    f_.fitted("idle_start.launch_communication", to_string(start.launch_communication),
              both.size());
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
  double first_call(const std::vector<kernel_times>& kernels) {
    std::vector<double> longer;
    for (const auto& k : kernels)
      longer.push_back(k.from_idle - k.in_a_row / f_.kernel(k.kernel).boost);
    return longer.empty() ? 0 : std::max(0.0, median(longer));
  }

  void fit_slowdowns(const times_from_idle& idle) {
    std::map<link_kind, std::vector<double>> slowdowns;
    std::map<std::pair<std::string, pass_kind>, std::vector<double>> waits;
    f_.each<overlap_point>([&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.transfer.channels > 0) return;
      const auto flow = flow_of(p.transfer, *set.on);
      const double alone = std::find_if(idle.begin(), idle.end(), [&](const auto& k) {
                             return k.first == p.kernel;
                           })->second;
      const double kernel = m.median("kernel_s"), transfer = m.median("transfer_s");
      if (p.order == launch_order::compute_first) {
        waits[{p.kernel.kernel, p.kernel.pass}].push_back(transfer / kernel);
        return;
      }
      const double beside =
          std::min(transfer - f_.profile().idle_start.launch_communication.value(), kernel);
      const double lost = kernel - alone;  // beside x (1 - 1 / slowdown), as sim/kernel_run has it
      constexpr double enough = 0.1;
      if (beside > enough * kernel && lost < 0.5 * beside)
        slowdowns[flow.transport].push_back(beside / (beside - lost));
    });
    for (const auto kind :
         {link_kind::nvlink, link_kind::pcie, link_kind::host_memory, link_kind::network}) {
      const auto name = fmt::format("transports.{}.slowdown", name_of(kind));
      const auto& list = slowdowns[kind];
      if (list.size() < 4) {
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
    const auto found = median(waits) < 0.9 ? block_scheduling::waves : block_scheduling::persistent;
    (pass == pass_kind::forward ? kernel.scheduling : kernel.backward_scheduling) = found;
    f_.fitted(fmt::format("kernel {} occupancy, {}", kernel.name, name_of(pass)),
              found == block_scheduling::waves ? "waves" : "persistent", waits.size(),
              fmt::format(", a transfer launched second ends at {:.2f} of the kernel (median)",
                          median(waits)));
  }

  fitting& f_;
};

}  // namespace

void fit_interference(fitting& f) {
  interference_fits(f).run();
}

}  // namespace attnsim
