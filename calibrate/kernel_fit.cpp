// Kernel laws (device.hpp): times by least squares, what multiplies them searched.
#include "calibrate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "calibrate/predicted.hpp"
#include "model/error.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

class kernel_fits {
 public:
  explicit kernel_fits(fitting& f) : f_(f) {}

  void run() {
    using kind = std::pair<mask_kind, std::int64_t>;  // and query heads of a K/V head
    using kinds = std::map<kind, std::vector<timed_kernel>>;
    std::map<std::string, std::map<cut, kinds>> all;
    std::map<std::string, std::vector<timed_kernel>> few;
    f_.each<kernel_point>([&](const auto& p, const auto& m, const auto&) {
      require_possible(p, m.median());
      if (has_few_rows(p)) return few[p.kernel].push_back({p, m.median()});
      if (is_the_hosts(m)) return;
      all[p.kernel][cut_of(p)][{p.mask, p.heads / p.kv_heads}].push_back(
          {p, std::max(m.median() - f_.profile().kernel_launch.value(), 0.1 * m.median())});
    });
    if (all.empty() && few.empty()) return f_.kept("kernels", "none measured");
    constexpr std::size_t enough = 6;
    for (const auto& [name, families] : all) {
      auto& kernel = f_.kernel(name);
      const auto before = kernel;
      kernel.basis = basis::measured;
      kernel.laws.clear();
      kernel.tables.clear();
      for (const auto& [cut, by_kind] : families) {
        family members;
        for (const auto& [mask_and_group, points] : by_kind) {
          points.size() < enough ? f_.kept(name_of_law(kernel, points), "fewer than 6 shapes")
                                 : members.push_back(&points);
        }
        if (!members.empty()) fit_family(kernel, members, known_blocks(before, cut));
      }
      for (const auto& law : before.laws) {
        const auto measured = families.find(cut_of(law));
        if (is_in(kernel.laws, law)) continue;
        kernel.laws.push_back(measured == families.end()
                                  ? law
                                  : slower(law, before,
                                           measured->second.find({law.mask, law.group}),
                                           measured->second.end()));
      }
    }
    for (const auto& [name, points] : few) fit_split(f_.kernel(name), points);
  }

 private:
  struct timed_kernel {
    kernel_point what;
    double time = 0;  ///< without the launch; of few rows with it
  };

  /// Pass, head dimension and, of kernels with several tiles, which (kernel_law, taken_below): what decides how calls are cut.
  using cut = std::tuple<pass_kind, std::int64_t, double>;

  static cut cut_of(const kernel_law& law) { return {law.pass, law.head_dim, law.taken_below}; }

  cut cut_of(const kernel_point& p) {
    const auto& kernel = f_.kernel(p.kernel);
    const auto* law =
        kernel.basis == basis::measured ? law_taken(f_.profile(), kernel, call_of(p)) : nullptr;
    const bool own = law && law->pass == p.pass && law->head_dim == p.head_dim;
    return {p.pass, p.head_dim, own ? law->taken_below : 0};
  }

  static bool is_in(const std::vector<kernel_law>& laws, const kernel_law& wanted) {
    return std::any_of(laws.begin(), laws.end(), [&](const auto& one) {
      return one.of_same_calls(wanted) && one.taken_below == wanted.taken_below;
    });
  }

  /// A law of the prior's, where that was measured: how a kernel cuts its work is the same on every machine, and a few shapes, sides
  /// of powers of two above all, hardly tell it.
  static const kernel_law* known_blocks(const kernel_profile& before, const cut& wanted) {
    if (before.basis != basis::measured) return nullptr;
    const auto found = std::find_if(before.laws.begin(), before.laws.end(),
                                    [&](const auto& law) { return cut_of(law) == wanted; });
    return found == before.laws.end() ? nullptr : &*found;
  }

  /// The prior's law as many times slower as the few shapes are that were measured of it.
  template <typename Found>
  kernel_law slower(kernel_law law, const kernel_profile& before, Found found, Found none) {
    if (found == none) return law;
    std::vector<double> ratios;
    for (const auto& p : found->second) {
      const auto expected = kernel_time(f_.profile(), &before, call_of(p.what));
      ratios.push_back(p.time / (expected - f_.profile().kernel_launch).value());
    }
    const double factor = median(ratios);
    for (std::size_t i = 0; ratios.size() > 1 && i < ratios.size(); ++i) {
      auto others = ratios;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      f_.kernel_residuals.push_back(std::abs(median(others) / ratios[i] - 1));
    }
    for (auto* time : {&law.start, &law.block, &law.token, &law.row}) *time = factor * *time;
    return law;
  }

  /// Calls one behind the other that take no longer than the host's to launch them.
  static bool is_the_hosts(const measurement& m) {
    constexpr double nearly = 0.9;
    const auto launches = m.samples.find("launch_s");
    return launches != m.samples.end() && median(launches->second) > nearly * m.median();
  }

  void require_possible(const kernel_point& p, double time) {
    const auto call = call_of(p);
    const auto rate = operations(call) / seconds(time), peak = f_.profile().peak(call.dtype);
    if (rate <= peak) return;
    throw input_error(
        describe(p), to_string(rate),
        fmt::format("expected at most the device's peak, {}: was the kernel launched at "
                    "all, or is it another device?",
                    to_string(peak)));
  }

  /// From the law that is known, or a usual one, one figure after the other is set to the best of its values until none moves.
  void fit_split(kernel_profile& kernel, const std::vector<timed_kernel>& points) {
    const auto name = fmt::format("kernel {} key_split", kernel.name);
    if (kernel.laws.empty() && kernel.tables.empty())
      return f_.kept(name, "no other shapes of the kernel");
    auto& law = kernel.split;
    law = {.efficiency = 0.85, .combine = seconds(2e-6)};
    double best = split_size(kernel, points), before = 0;
    const auto search = [&](auto& figure, const auto& values) {
      auto found = figure;
      for (const auto value : values) {
        figure = value;
        if (const double size = split_size(kernel, points); size < best) best = size, found = value;
      }
      figure = found;
    };
    std::vector<double> shares;
    std::vector<seconds> times;
    for (int i = 100; i >= 10; --i) shares.push_back(i / 100.0);
    for (int i = 0; i <= 60; ++i) times.push_back(seconds(i * 0.25e-6));
    do {
      before = best;
      search(law.efficiency, shares);
      search(law.combine, times);
      search(law.filling, shares);
      search(law.rows, std::vector{16, 32, 64, 128});
      search(law.least, std::vector{64, 128, 256, 512, 1024, 2048});
    } while (best < before);
    take_split(kernel, points, name);
  }

  double split_error(const kernel_profile& kernel, const timed_kernel& p) const {
    return kernel_time(f_.profile(), &kernel, call_of(p.what)).value() / p.time - 1;
  }

  double split_size(const kernel_profile& kernel, const std::vector<timed_kernel>& points) const {
    std::vector<double> errors;
    for (const auto& p : points) errors.push_back(split_error(kernel, p));
    return capped_size(errors);
  }

  void take_split(kernel_profile& kernel, const std::vector<timed_kernel>& points,
                  const std::string& name) {
    std::vector<double> sizes;
    for (const auto& p : points) sizes.push_back(std::abs(split_error(kernel, p)));
    auto& law = kernel.split;
    law.uncertainty = interval_of(sizes);
    f_.fitted(name,
              fmt::format("{} of the memory bandwidth, {:.4g} us to combine, blocks of {} rows, "
                          "splits of {} keys, {} of the multiprocessors fill",
                          percent(law.efficiency), law.combine.value() * 1e6, law.rows, law.least,
                          percent(law.filling)),
              points.size(),
              fmt::format(", residuals {} (median), {} (95 %)", percent(median(sizes)),
                          percent(quantile(sizes, 0.95))));
  }

  using family = std::vector<
      const std::vector<timed_kernel>*>;  ///< of one pass and head dimension; by mask and group

  struct family_fit {
    std::vector<kernel_law> laws;
    std::vector<linear_fit> fits;
    double size = std::numeric_limits<double>::infinity();  ///< of the residuals
  };

  /// Start, block, token and row by least squares, for each mask and group; what multiplies them (tiles, slots, ...) is
  /// searched and the same for all: it is one kernel. `known`: not searched.
  void fit_family(kernel_profile& kernel, const family& members, const kernel_law* known) {
    family_fit best = known ? fit_laws(members, *known) : searched_family(members);
    for (std::size_t i = 0; i < members.size(); ++i)
      take_law(kernel, *members[i], best.laws[i], best.fits[i]);
  }

  family_fit searched_family(const family& members) {
    const auto any = [&](auto is) {
      return std::any_of(members.begin(), members.end(),
                         [&](const auto* points) { return is(points->front().what); });
    };
    const bool causal = any([](const auto& p) { return p.mask == mask_kind::causal; });
    const bool shared =
        any([](const auto& p) { return p.pass == pass_kind::backward && p.heads != p.kv_heads; });
    const auto searched = [](bool yes, std::vector<double> values) {
      return yes ? values : std::vector<double>{values.front()};
    };
    family_fit best;
    for (const int tile : {64, 128, 192, 256}) {
      for (const int slots : {1, 2}) {
        for (const double grouped : searched(shared, {0, 1})) {
          for (const double uneven : searched(causal, {0.5, 0, 0.25, 1, 1.5, 2})) {
            for (const double diagonal : searched(causal, {0, -0.5, 0.5})) {
              auto tried = fit_laws(members, {.tile = tile,
                                              .slots = slots,
                                              .grouped = grouped > 0,
                                              .uneven = uneven,
                                              .diagonal = diagonal});
              if (tried.size < best.size) best = std::move(tried);
            }
          }
        }
      }
    }
    return best;
  }

  /// Squares cannot tell what rows take by themselves from what blocks do: they have it from the rectangles.
  static bool tells_rows(const std::vector<timed_kernel>& points) {
    return std::any_of(points.begin(), points.end(),
                       [](const auto& p) { return p.what.rows != p.what.cols; });
  }

  family_fit fit_laws(const family& members, kernel_law law) {
    family_fit all{.size = 0};
    bool known = false;
    for (const auto* points : members) {
      const auto& first = points->front().what;
      law.pass = first.pass;
      law.head_dim = first.head_dim;
      law.mask = first.mask;
      law.group = static_cast<int>(first.heads / first.kv_heads);
      const bool tells = tells_rows(*points);
      all.fits.push_back(fit_law(law, *points, known && !tells));
      known = known || tells;
      all.laws.push_back(law);
      all.size += capped_size(all.fits.back().residuals);
    }
    return all;
  }

  void take_law(kernel_profile& kernel, const std::vector<timed_kernel>& points,
                const kernel_law& law, const linear_fit& fit) {
    kernel.laws.push_back(law);
    std::vector<double> sizes;
    for (const double r : fit.residuals) sizes.push_back(std::abs(r));
    f_.fitted(name_of_law(kernel, points),
              fmt::format("blocks of {} tokens, {} at once{}", law.tile, law.slots,
                          law.grouped ? ", over groups of heads" : ""),
              points.size(),
              fmt::format(", residuals {} (median), {} (95 %)", percent(median(sizes)),
                          percent(quantile(sizes, 0.95))));
    std::vector<std::string> names;
    for (const auto& p : points) names.push_back(describe(p.what));
    f_.name_outliers(fit, names);
    for (const double r : fit.left_out) f_.kernel_residuals.push_back(std::abs(r));
  }

  static std::string name_of_law(const kernel_profile& kernel,
                                 const std::vector<timed_kernel>& points) {
    const auto& p = points.front().what;
    return fmt::format("kernel {} {} {}, head dimension {}, {} query heads a K/V head", kernel.name,
                       name_of(p.pass), name_of(p.mask), p.head_dim, p.heads / p.kv_heads);
  }

  static double capped_size(const std::vector<double>& residuals) {
    constexpr double far = 0.3;
    double total = 0;
    for (const double r : residuals) total += std::min(std::abs(r), far);
    return total;
  }

  /// Sets the law's times, but for its rows' where that is known. Which time of a triangle counts depends on them, so a few
  /// rounds.
  linear_fit fit_law(kernel_law& law, const std::vector<timed_kernel>& points, bool knows_row) {
    constexpr int rounds = 3;
    const auto n = static_cast<Eigen::Index>(points.size());
    Eigen::MatrixXd a(n, law.pass == pass_kind::backward && !knows_row ? 4 : 3);
    Eigen::VectorXd time(n);
    law.block = seconds(5e-6);
    law.token = seconds(15e-9);
    linear_fit fit;
    for (int round = 0; round < rounds; ++round) {
      for (Eigen::Index i = 0; i < n; ++i) {
        const auto& p = points[static_cast<std::size_t>(i)];
        const auto call = call_of(p.what);
        const auto t = law_terms_of(law, call, f_.profile().multiprocessors);
        a(i, 0) = 1;
        a(i, 1) = t.blocks;
        a(i, 2) = t.tokens;
        const auto rows = static_cast<double>(call.batch * call.heads * call.rows);
        if (a.cols() > 3) a(i, 3) = rows;
        time[i] = knows_row ? std::max(p.time - rows * law.row.value(), 0.1 * p.time) : p.time;
      }
      fit = robust_fit(a, time);
      law.start = seconds(fit.parameters[0]);
      law.block = seconds(fit.parameters[1]);
      law.token = seconds(fit.parameters[2]);
      if (a.cols() > 3) law.row = seconds(fit.parameters[3]);
    }
    return fit;
  }

  fitting& f_;
};

}  // namespace

void fit_kernels(fitting& f) {
  kernel_fits(f).run();
}

}  // namespace attnsim
