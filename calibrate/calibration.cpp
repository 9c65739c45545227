#include "calibrate/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "calibrate/fit.hpp"
#include "calibrate/predicted.hpp"
#include "model/cost/collective.hpp"
#include "model/error.hpp"

namespace attnsim {
namespace {

template <typename Point, typename Use>
void each(const std::vector<measurement_set>& sets, const Use& use) {
  for (const auto& set : sets) {
    for (const auto& m : set.data.points) {
      const auto* point = std::get_if<Point>(&m.what);
      if (point && m.rounds() > 0) use(*point, m, set);
    }
  }
}

/// The value below which a share of the values lies.
double quantile(std::vector<double> values, double share) {
  const auto place = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

class calibrating {
 public:
  calibrating(const device_profile& prior, const std::vector<measurement_set>& sets,
              const std::vector<log_set>& logs)
      : sets_(sets), logs_(logs) {
    result_.profile = prior;
  }

  calibration run() {
    fit_memory();
    fit_kernels();
    for (const auto kind : {link_kind::nvlink, link_kind::pcie, link_kind::network})
      fit_transport(kind);
    fit_idle_start();
    fit_interference();
    fit_intervals();
    return std::move(result_);
  }

 private:
  device_profile& profile() { return result_.profile; }

  void fitted(std::string_view name, const std::string& value, std::size_t points,
              const std::string& rest = "") {
    result_.fitted.push_back(fmt::format("{}: {} from {} points{}", name, value, points, rest));
  }
  void kept(std::string_view name, std::string_view why) {
    result_.kept.push_back(fmt::format("{}: {}", name, why));
  }
  void name_outliers(const linear_fit& fit, const std::vector<std::string>& names) {
    for (const auto i : outliers(fit)) {
      result_.outliers.push_back(
          fmt::format("{}: fitted {:+.0f} % off", names[i], 100 * fit.residuals[i]));
    }
  }

  // --- On one device --------------------------------------------------------------------------------

  void fit_memory() {
    std::vector<std::pair<double, double>> points, deltas;  // bytes, seconds
    std::vector<std::string> names;
    each<memory_point>(sets_, [&](const auto& p, const auto& m, const auto&) {
      const std::pair sample(static_cast<double>(memory_traffic(p)), m.median());
      if (p.operation == "delta") return deltas.push_back(sample);
      points.push_back(sample);
      names.push_back(describe(p));
    });
    if (points.size() < 3) return kept("memory efficiency, kernel launch", "no memory operations");
    const auto cache = static_cast<double>(profile().cache.value());
    const auto in_cache = std::count_if(points.begin(), points.end(),
                                        [&](const auto& p) { return p.first <= cache; });
    Eigen::MatrixXd a =
        Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(points.size()), in_cache > 0 ? 3 : 2);
    Eigen::VectorXd b(a.rows());
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      const auto& [bytes, time] = points[static_cast<std::size_t>(i)];
      a(i, 0) = 1;
      a(i, bytes <= cache ? 2 : 1) = bytes / profile().memory_bandwidth.value();
      b[i] = time;
    }
    const auto fit = robust_fit(a, b);
    const double efficiency = 1 / fit.parameters[1];
    if (efficiency > 1) {
      throw input_error(
          "memory operations", fmt::format("{:.2f} of the peak", efficiency),
          "expected at most the memory's bandwidth; all tensors may have been in the cache");
    }
    profile().kernel_launch = seconds(fit.parameters[0]);
    profile().memory_efficiency = efficiency;
    fitted("kernel launch", to_string(profile().kernel_launch), points.size());
    fitted("memory efficiency", fmt::format("{:.3f}", efficiency), points.size(),
           ", residuals " + percent(fit.deviation));
    fit_delta(deltas);
    if (in_cache > 0) {
      profile().cache_bandwidth = profile().memory_bandwidth * (1 / fit.parameters[2]);
      fitted("cache bandwidth", to_string(profile().cache_bandwidth),
             static_cast<std::size_t>(in_cache));
    }
    name_outliers(fit, names);
  }

  /// From the largest.
  void fit_delta(const std::vector<std::pair<double, double>>& points) {
    if (points.empty()) return kept("delta efficiency", "not measured");
    const auto [bytes, time] = *std::max_element(points.begin(), points.end());
    const double moving = std::max(time - profile().kernel_launch.value(), 0.1 * time);
    profile().delta_efficiency = std::min(1.0, bytes / moving / profile().memory_bandwidth.value());
    fitted("delta efficiency", fmt::format("{:.3f}", profile().delta_efficiency), 1);
  }

  struct timed_kernel {
    kernel_point what;
    double time = 0;  ///< without the launch
  };

  void fit_kernels() {
    using kind = std::pair<mask_kind, std::int64_t>;  // and query heads of a K/V head
    using kinds = std::map<kind, std::vector<timed_kernel>>;
    std::map<std::string, std::map<std::pair<pass_kind, std::int64_t>, kinds>> all;
    each<kernel_point>(sets_, [&](const auto& p, const auto& m, const auto&) {
      require_possible(p, m.median());
      all[p.kernel][{p.pass, p.head_dim}][{p.mask, p.heads / p.kv_heads}].push_back(
          {p, std::max(m.median() - profile().kernel_launch.value(), 0.1 * m.median())});
    });
    if (all.empty()) return kept("kernels", "none measured");
    constexpr std::size_t enough = 6;
    for (const auto& [name, families] : all) {
      auto& kernel = place_for(name);
      kernel.laws.clear();
      kernel.tables.clear();
      for (const auto& [pass_and_dim, by_kind] : families) {
        family members;
        for (const auto& [mask_and_group, points] : by_kind) {
          points.size() < enough ? kept(name_of_law(kernel, points), "fewer than 6 shapes")
                                 : members.push_back(&points);
        }
        if (!members.empty()) fit_family(kernel, members);
      }
    }
  }

  void require_possible(const kernel_point& p, double time) {
    const auto call = call_of(p);
    const auto rate = operations(call) / seconds(time), peak = profile().peak(call.dtype);
    if (rate <= peak) return;
    throw input_error(
        describe(p), to_string(rate),
        fmt::format("expected at most the device's peak, {}: was the kernel launched at "
                    "all, or is it another device?",
                    to_string(peak)));
  }

  kernel_profile& place_for(const std::string& name) {
    const auto known = profile_kernel(profile(), name);
    for (auto& k : profile().kernels) {
      if (k.name == known) return k;
    }
    profile().kernels.push_back({.name = name == "cuda" ? "attnsim-cuda" : name});
    return profile().kernels.back();
  }

  using family = std::vector<
      const std::vector<timed_kernel>*>;  ///< of one pass and head dimension; by mask and group

  struct family_fit {
    std::vector<kernel_law> laws;
    std::vector<linear_fit> fits;
    double size = std::numeric_limits<double>::infinity();  ///< of the residuals
  };

  /// Start, block, token and row by least squares, for each mask and group; what multiplies them (tiles, slots, ...) is
  /// searched and the same for all: it is one kernel.
  void fit_family(kernel_profile& kernel, const family& members) {
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
          for (const double uneven : searched(causal, {0.5, 0, 0.25, 1})) {
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
    for (std::size_t i = 0; i < members.size(); ++i)
      take_law(kernel, *members[i], best.laws[i], best.fits[i]);
  }

  family_fit fit_laws(const family& members, kernel_law law) {
    family_fit all{.size = 0};
    for (const auto* points : members) {
      const auto& first = points->front().what;
      law.pass = first.pass;
      law.head_dim = first.head_dim;
      law.mask = first.mask;
      law.group = static_cast<int>(first.heads / first.kv_heads);
      all.fits.push_back(fit_law(law, *points));
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
    fitted(name_of_law(kernel, points),
           fmt::format("blocks of {} tokens, {} at once{}", law.tile, law.slots,
                       law.grouped ? ", over groups of heads" : ""),
           points.size(),
           fmt::format(", residuals {} (median), {} (95 %)", percent(median(sizes)),
                       percent(quantile(sizes, 0.95))));
    std::vector<std::string> names;
    for (const auto& p : points) names.push_back(describe(p.what));
    name_outliers(fit, names);
    kernel_residuals_.insert(kernel_residuals_.end(), sizes.begin(), sizes.end());
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

  /// Sets the law's times. Which time of a triangle counts depends on them, so a few rounds.
  linear_fit fit_law(kernel_law& law, const std::vector<timed_kernel>& points) {
    constexpr int rounds = 3;
    const auto n = static_cast<Eigen::Index>(points.size());
    Eigen::MatrixXd a(n, law.pass == pass_kind::backward ? 4 : 3);
    Eigen::VectorXd time(n);
    law.block = seconds(5e-6);
    law.token = seconds(15e-9);
    linear_fit fit;
    for (int round = 0; round < rounds; ++round) {
      for (Eigen::Index i = 0; i < n; ++i) {
        const auto& p = points[static_cast<std::size_t>(i)];
        const auto call = call_of(p.what);
        const auto t = law_terms_of(law, call, profile().multiprocessors);
        a(i, 0) = 1;
        a(i, 1) = t.blocks;
        a(i, 2) = t.tokens;
        if (a.cols() > 3) a(i, 3) = static_cast<double>(call.batch * call.heads * call.rows);
        time[i] = p.time;
      }
      fit = robust_fit(a, time);
      law.start = seconds(fit.parameters[0]);
      law.block = seconds(fit.parameters[1]);
      law.token = seconds(fit.parameters[2]);
      if (a.cols() > 3) law.row = seconds(fit.parameters[3]);
    }
    return fit;
  }

  // --- Transports -----------------------------------------------------------------------------------

  /// One timed transfer: time = known + latency's parameters + ramp + bytes over a rate.
  struct transfer_row {
    transfer_point what;
    collective_flow flow;  ///< on links of full efficiency, without the transport's latencies
    double rounds = 0;     ///< of a ring
    double per_byte = 0;   ///< seconds, on links of full efficiency
    double time = 0;
    bool steady = false;  ///< seen several times, half of them within three tenths
    std::string name;
  };

  static cluster without_costs(const cluster& c) {
    auto bare = c;
    for (auto& t : bare.device.transports) t = transport_profile{};
    return bare;
  }

  static bool is_steady(const measurement& m) {
    const auto& times = m.samples.at("time_s");
    return times.size() >= 3 && quantile(times, 0.75) - quantile(times, 0.25) < 0.3 * median(times);
  }

  void add_row(std::vector<transfer_row>& rows, link_kind kind, const transfer_point& p,
               const cluster& bare, double time, bool steady, const std::string& name) const {
    transfer_row row{
        .what = p, .flow = flow_of(p, bare), .time = time, .steady = steady, .name = name};
    if (row.flow.transport != kind) return;
    const bool ring = p.operation == transfer_kind::all_gather ||
                      p.operation == transfer_kind::reduce_scatter ||
                      p.operation == transfer_kind::all_reduce;
    if (ring) row.rounds = (p.operation == transfer_kind::all_reduce ? 2 : 1) * (p.members - 1);
    row.per_byte = row.flow.seconds_a_byte(bare.network);
    const double shortest = row.flow.bytes * row.per_byte;
    if (time < shortest) {
      throw input_error(
          name, fmt::format("{:.4g} us", time * 1e6),
          fmt::format("expected at least {:.4g} us, which the links need at their full "
                      "bandwidth: is it another cluster, or was nothing sent (an "
                      "in-network reduction)?",
                      shortest * 1e6));
    }
    rows.push_back(std::move(row));
  }

  std::vector<transfer_row> rows_of(link_kind kind) {
    std::vector<transfer_row> rows;
    for (const auto& set : sets_) {
      if (!set.on) continue;
      const auto bare = without_costs(*set.on);
      for (const auto& m : set.data.points) {
        const auto* p = std::get_if<transfer_point>(&m.what);
        if (!p || p->processors > 0 || p->at_once > 1 || p->also > 0 || p->bytes == 0 ||
            m.rounds() == 0)
          continue;
        add_row(rows, kind, *p, bare, m.median(), is_steady(m),
                fmt::format("{}: {}", set.file, describe(*p)));
      }
    }
    for (const auto& log : logs_) add_log(rows, kind, log);
    return rows;
  }

  /// Sizes of nccl-tests: the gathered result, the reduced input, what one rank sends to all.
  void add_log(std::vector<transfer_row>& rows, link_kind kind, const log_set& set) {
    static const std::map<std::string, transfer_kind> kinds{
        {"sendrecv", transfer_kind::exchange},
        {"all_gather", transfer_kind::all_gather},
        {"reduce_scatter", transfer_kind::reduce_scatter},
        {"alltoall", transfer_kind::all_to_all},
        {"all_reduce", transfer_kind::all_reduce}};
    const auto operation = kinds.find(set.log.operation);
    if (!set.on || operation == kinds.end()) return;
    const auto bare = without_costs(*set.on);
    const int ranks = set.log.ranks > 0 ? set.log.ranks : set.on->devices();
    const bool whole = operation->second == transfer_kind::exchange ||
                       operation->second == transfer_kind::all_reduce;
    for (const auto& row : set.log.rows) {
      const transfer_point p{.operation = operation->second,
                             .members = ranks,
                             .bytes = whole ? row.bytes : row.bytes / ranks};
      if (p.bytes > 0)
        add_row(rows, kind, p, bare, row.out_of_place.time_us * 1e-6, false,
                fmt::format("{}:{}: {}", set.file, row.line, describe(p)));
    }
  }

  // Messages (send, exchange, all-to-all) and rings are fitted apart; a send alone and an all-reduce have a rate and a ramp
  // of their own. The rate is that of the largest sizes, the latency that of the smallest, the ramp what is left at each size.

  static bool is_other(const transfer_row& r) {
    return r.what.operation == transfer_kind::send || r.what.operation == transfer_kind::all_reduce;
  }

  void fit_transport(link_kind kind) {
    const auto where = fmt::format("transports.{}", name_of(kind));
    auto rows = rows_of(kind);
    const auto middle = std::stable_partition(rows.begin(), rows.end(),
                                              [](const auto& r) { return r.rounds == 0; });
    std::vector<transfer_row> messages(rows.begin(), middle), rings(middle, rows.end());
    auto& t = profile().transports[static_cast<int>(kind)];
    residuals_of_transport_.clear();
    fit_group(where, messages,
              {.latency = {"latency", &t.latency},
               .step = {"", nullptr},
               .usual = {"efficiency", &t.efficiency, &t.ramp},
               .other = {"one_way_efficiency", &t.one_way_efficiency, &t.one_way_ramp}});
    fit_group(where, rings,
              {.latency = {"collective_latency", &t.collective_latency},
               .step = {"step_latency", &t.step_latency},
               .usual = {"collective_efficiency", &t.collective_efficiency, &t.collective_ramp},
               .other = {"all_reduce_efficiency", &t.all_reduce_efficiency, &t.all_reduce_ramp}});
    const bool only_all_reduce =
        !rings.empty() &&
        std::all_of(rings.begin(), rings.end(), [](const auto& r) { return is_other(r); });
    if (only_all_reduce) {
      t.collective_efficiency = t.all_reduce_efficiency;
      t.collective_ramp = t.all_reduce_ramp;
      result_.warnings.push_back(
          where +
          ": only all-reduce was measured; all-gather and reduce-scatter are taken to move "
          "data at its rate, which in-network reduction (NVLS, SHARP) makes faster than theirs");
    }
    if (!residuals_of_transport_.empty()) {
      t.uncertainty = interval_of(residuals_of_transport_);
      fitted(where + ".uncertainty", percent(t.uncertainty), residuals_of_transport_.size());
    }
    transfer_residuals_.insert(transfer_residuals_.end(), residuals_of_transport_.begin(),
                               residuals_of_transport_.end());
    fit_channels(kind, where);
    fit_sharing(kind, where);
    fit_messages(kind, where);
  }

  struct latency_field {
    const char* name;
    seconds* to;
  };
  struct rate_field {
    const char* name;
    double* to;
    message_ramp* ramp;
  };
  struct group_fields {
    latency_field latency, step;
    rate_field usual, other;
  };

  void fit_group(const std::string& where, const std::vector<transfer_row>& rows,
                 const group_fields& fields) {
    constexpr std::size_t enough = 4;
    if (rows.size() < enough)
      return kept(fmt::format("{}.{} and its like", where, fields.usual.name),
                  "fewer than 4 such transfers");
    std::vector<transfer_row> usual, other;
    for (const auto& r : rows) (is_other(r) ? other : usual).push_back(r);
    fit_rate(where, usual, fields.usual);
    fit_rate(where, other, fields.other);
    fit_latency(where, rows, fields);
    fit_ramp(where, usual, fields, fields.usual);
    fit_ramp(where, other, fields, fields.other);
  }

  static double largest_of(const std::vector<transfer_row>& rows) {
    double most = 0;
    for (const auto& r : rows) most = std::max(most, r.flow.bytes);
    return most;
  }

  static std::size_t sizes_of(const std::vector<transfer_row>& rows) {
    std::set<double> sizes;
    for (const auto& r : rows) sizes.insert(r.flow.bytes);
    return sizes.size();
  }

  /// From the largest sizes, of steady times where there are enough.
  void fit_rate(const std::string& where, std::vector<transfer_row> rows, const rate_field& field) {
    constexpr double large = 1.0 / 16;  // of the largest
    constexpr std::size_t enough = 3;
    const auto name = fmt::format("{}.{}", where, field.name);
    if (rows.empty()) return kept(name, "no operations that tell it");
    auto steady = rows;
    std::erase_if(steady, [](const auto& r) { return !r.steady; });
    if (sizes_of(steady) >= enough) rows = std::move(steady);
    const double most = largest_of(rows);
    std::erase_if(rows, [&](const auto& r) { return r.flow.bytes < large * most; });
    if (sizes_of(rows) < 2) return kept(name, "only one large size");
    Eigen::MatrixXd a(static_cast<Eigen::Index>(rows.size()), 2);
    Eigen::VectorXd time(a.rows());
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      const auto& r = rows[static_cast<std::size_t>(i)];
      a(i, 0) = 1;
      a(i, 1) = r.flow.bytes * r.per_byte;
      time[i] = r.time;
    }
    const auto fit = robust_fit(a, time);
    *field.to = std::min(1.0, 1 / fit.parameters[1]);
    fitted(name, fmt::format("{:.3f}", *field.to), rows.size(),
           ", residuals " + percent(fit.deviation));
  }

  /// Beyond the links' own latency and the bytes at their rate.
  static double rest_of(const transfer_row& r, const group_fields& fields) {
    const double share = is_other(r) ? *fields.other.to : *fields.usual.to;
    return r.time - r.flow.latency.fixed.value() - r.flow.bytes * r.per_byte / share;
  }

  void fit_latency(const std::string& where, const std::vector<transfer_row>& rows,
                   const group_fields& fields) {
    constexpr double small = 8;  // times the smallest
    double least = largest_of(rows);
    for (const auto& r : rows) least = std::min(least, r.flow.bytes);
    std::vector<const transfer_row*> used;
    std::set<double> rounds;
    for (const auto& r : rows) {
      if (r.flow.bytes > small * least) continue;
      used.push_back(&r);
      rounds.insert(r.rounds);
    }
    const bool stepped = rounds.size() > 1;
    Eigen::MatrixXd a(static_cast<Eigen::Index>(used.size()), stepped ? 2 : 1);
    Eigen::VectorXd time(a.rows());
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      const auto& r = *used[static_cast<std::size_t>(i)];
      a(i, 0) = 1;
      if (stepped) a(i, 1) = r.rounds;
      time[i] = std::max(rest_of(r, fields), 0.1 * r.time);
    }
    const auto fit = robust_fit(a, time);
    const auto take = [&](const latency_field& field, Eigen::Index i) {
      *field.to = seconds(fit.parameters[i]);
      fitted(fmt::format("{}.{}", where, field.name), to_string(*field.to), used.size());
    };
    take(fields.latency, 0);
    if (stepped) take(fields.step, 1);
    if (fields.step.to && !stepped)
      kept(fmt::format("{}.{}", where, fields.step.name), "no groups that tell it");
  }

  void fit_ramp(const std::string& where, const std::vector<transfer_row>& rows,
                const group_fields& fields, const rate_field& field) {
    constexpr std::size_t enough = 3;
    std::vector<ramp_size> sizes;
    std::map<double, std::vector<const transfer_row*>> by_size;
    for (const auto& r : rows) by_size[r.flow.bytes].push_back(&r);
    for (const auto& [bytes, of_size] : by_size) {
      ramp_size size{.bytes = bytes, .name = of_size.front()->name};
      size.steady = std::any_of(of_size.begin(), of_size.end(), [](auto* r) { return r->steady; });
      std::vector<double> over, totals;
      for (const auto* r : of_size) {
        if (size.steady && !r->steady) continue;
        const double steps = fields.step.to ? r->rounds * fields.step.to->value() : 0;
        over.push_back(rest_of(*r, fields) - fields.latency.to->value() - steps);
        totals.push_back(r->time);
      }
      size.over = median(over);
      size.total = median(totals);
      sizes.push_back(size);
    }
    leave_out_far_off(sizes);
    if (sizes.size() < enough) return;
    std::vector<message_ramp::point> points;
    std::vector<double> residuals;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      points.push_back({sizes[i].bytes, seconds(sizes[i].over)});
      residuals.push_back(std::abs(by_neighbours(sizes, i) / sizes[i].total - 1));
    }
    *field.ramp = message_ramp(points);
    residuals_of_transport_.insert(residuals_of_transport_.end(), residuals.begin(),
                                   residuals.end());
    fitted(fmt::format("{}.{}, ramp", where, field.name), fmt::format("{} sizes", sizes.size()),
           rows.size(),
           ", each from its neighbours " + percent(median(residuals)) + " off (median)");
  }

  struct ramp_size {
    double bytes = 0;
    double over = 0;   ///< seconds beyond latency and rate
    double total = 0;  ///< seconds
    bool steady = false;
    std::string name;
  };

  /// The time at a size as the sizes beside it have it.
  static double by_neighbours(const std::vector<ramp_size>& sizes, std::size_t i) {
    std::vector<message_ramp::point> others;
    for (std::size_t j = 0; j < sizes.size(); ++j) {
      if (j != i) others.push_back({sizes[j].bytes, seconds(sizes[j].over)});
    }
    const double over = message_ramp(others).of(sizes[i].bytes).value();
    return std::max(0.1 * sizes[i].total, sizes[i].total - sizes[i].over + over);
  }

  /// One after the other, the worst first, as a bad one makes its neighbours look bad. What was seen again and again is
  /// believed, unless nothing like it can be: protocols do change between sizes.
  void leave_out_far_off(std::vector<ramp_size>& sizes) {
    constexpr double far = 1.15, far_if_steady = 2;
    while (sizes.size() > 2) {
      double worst = 0;
      std::size_t at = 0;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const double limit = std::log(sizes[i].steady ? far_if_steady : far);
        const double off = std::abs(std::log(by_neighbours(sizes, i) / sizes[i].total)) / limit;
        if (off > worst) {
          worst = off;
          at = i;
        }
      }
      if (worst <= 1) return;
      result_.outliers.push_back(
          fmt::format("{}: left out, its neighbours tell {:+.0f} %", sizes[at].name,
                      100 * (by_neighbours(sizes, at) / sizes[at].total - 1)));
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  /// From transfers with few multiprocessors, which no link limits.
  void fit_channels(link_kind kind, const std::string& where) {
    auto& t = profile().transports[static_cast<int>(kind)];
    std::vector<double> rates;
    each<transfer_point>(sets_, [&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.processors == 0 || p.operation != transfer_kind::exchange) return;
      const auto flow = flow_of(p, without_costs(*set.on));
      if (flow.transport != kind) return;
      const double before = t.latency.value() + t.ramp.of(static_cast<double>(p.bytes)).value();
      const double moving = m.median() - before;
      const double link = 1 / flow.seconds_a_byte(set.on->network);
      const double full = t.efficiency * link;
      const double rate = static_cast<double>(p.bytes) / moving;
      if (rate < 0.6 * full && before < 0.1 * moving)
        rates.push_back(rate / channels_for_peers(p.processors));
    });
    if (rates.empty())
      return kept(where + ".channels, channel_bandwidth", "no transfers with few multiprocessors");
    t.channel_bandwidth = bandwidth(median(rates));
    fitted(where + ".channel_bandwidth", to_string(t.channel_bandwidth), rates.size());
  }

  /// From several transfers at once: what they reach together.
  void fit_sharing(link_kind kind, const std::string& where) {
    auto& t = profile().transports[static_cast<int>(kind)];
    std::vector<double> shares;
    each<transfer_point>(sets_, [&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.at_once == 1 || p.also > 0) return;
      const auto bare = flow_of(p, without_costs(*set.on));
      if (bare.transport != kind) return;
      auto on = *set.on;
      on.device = profile();
      const double bytes = bare.bytes * p.at_once;
      const double moving = m.median() - flow_of(p, on).latency.of(bare.bytes).value();
      const double link = bytes * bare.seconds_a_byte(set.on->network);
      if (moving > 0.8 * m.median()) shares.push_back(std::min(1.0, link / moving));
    });
    if (shares.empty())
      return kept(where + ".shared_efficiency", "no large transfers of several at once");
    t.shared_efficiency = median(shares);
    fitted(where + ".shared_efficiency", fmt::format("{:.3f}", t.shared_efficiency), shares.size());
  }

  /// From a long and a short message in one group.
  void fit_messages(link_kind kind, const std::string& where) {
    auto& t = profile().transports[static_cast<int>(kind)];
    std::vector<double> shares;
    each<transfer_point>(sets_, [&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.also == 0) return;
      auto on = *set.on;
      on.device = profile();
      const auto flow = flow_of(p, on);
      if (flow.transport != kind) return;
      const double alone = flow.bytes * flow.seconds_a_byte(on.network);
      const double moving = m.median() - flow.latency.of(flow.bytes).value();
      if (moving > 0.8 * m.median()) shares.push_back(std::min(1.0, alone / moving));
    });
    if (shares.empty()) return kept(where + ".message_share", "no two messages in one group");
    t.message_share = median(shares);
    fitted(where + ".message_share", fmt::format("{:.3f}", t.message_share), shares.size());
  }

  // --- Both at once ---------------------------------------------------------------------------------

  /// The time of a kernel on idle devices with nothing beside it: the shortest seen.
  std::vector<std::pair<kernel_point, double>> kernels_from_idle() const {
    std::vector<std::pair<kernel_point, double>> shortest;
    each<overlap_point>(sets_, [&](const auto& p, const auto& m, const auto&) {
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

  void fit_idle_start() {
    std::vector<double> launch, both;
    each<overlap_point>(sets_, [&](const auto& p, const auto& m, const auto&) {
      const double kernel = m.median("kernel_s"), total = m.median();
      if (m.median("transfer_s") > 0.8 * kernel) return;
      (p.order == launch_order::compute_first ? launch : both).push_back(total - kernel);
    });
    if (launch.empty() || both.empty()) return kept("idle_start", "no overlaps with long kernels");
    auto& start = profile().idle_start;
    start.launch = seconds(median(launch));
    start.launch_communication = seconds(std::max(0.0, median(both) - median(launch)));
    fitted("idle_start.launch", to_string(start.launch), launch.size());
    fitted("idle_start.launch_communication", to_string(start.launch_communication), both.size());
    fit_boosts();
  }

  void fit_boosts() {
    const auto idle = kernels_from_idle();
    for (const auto& [name, ratios] : ratios_to_warm(idle)) {
      auto& kernel = place_for(name);
      kernel.boost = std::max(1.0, median(ratios));
      fitted(fmt::format("kernel {} boost", kernel.name), fmt::format("{:.3f}", kernel.boost),
             ratios.size());
    }
  }

  std::map<std::string, std::vector<double>> ratios_to_warm(
      const std::vector<std::pair<kernel_point, double>>& idle) const {
    std::map<std::string, std::vector<double>> ratios;
    each<kernel_point>(sets_, [&](const auto& p, const auto& m, const auto&) {
      for (const auto& [known, time] : idle) {
        if (known == p) ratios[p.kernel].push_back(m.median() / time);
      }
    });
    return ratios;
  }

  void fit_interference() {
    const auto idle = kernels_from_idle();
    std::map<link_kind, std::vector<double>> slowdowns;
    std::map<std::pair<std::string, pass_kind>, std::vector<double>> waits;
    each<overlap_point>(sets_, [&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.transfer.processors > 0) return;
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
          std::min(transfer - profile().idle_start.launch_communication.value(), kernel);
      const double lost = kernel - alone;
      constexpr double enough = 0.1;
      if (beside > enough * kernel && lost < 0.5 * beside)
        slowdowns[flow.transport].push_back(beside / (beside - lost));
    });
    for (const auto kind : {link_kind::nvlink, link_kind::pcie, link_kind::network}) {
      const auto name = fmt::format("transports.{}.slowdown", name_of(kind));
      const auto& list = slowdowns[kind];
      if (list.size() < 4) {
        kept(name, "no overlaps that tell it");
        continue;
      }
      profile().transports[static_cast<int>(kind)].slowdown = std::max(1.0, median(list));
      fitted(name, fmt::format("{:.3f}", std::max(1.0, median(list))), list.size(),
             fmt::format(", half between {:.3f} and {:.3f}", quantile(list, 0.25),
                         quantile(list, 0.75)));
    }
    for (const auto& [key, list] : waits) set_occupancy(key.first, key.second, list);
  }

  /// A transfer launched second ends before the kernel only where it gets in between thread blocks.
  void set_occupancy(const std::string& name, pass_kind pass, const std::vector<double>& waits) {
    auto& kernel = place_for(name);
    const auto found = median(waits) < 0.9 ? occupancy_kind::waves : occupancy_kind::persistent;
    (pass == pass_kind::forward ? kernel.occupancy : kernel.backward_occupancy) = found;
    fitted(fmt::format("kernel {} occupancy, {}", kernel.name, name_of(pass)),
           found == occupancy_kind::waves ? "waves" : "persistent", waits.size(),
           fmt::format(", a transfer launched second ends at {:.2f} of the kernel (median)",
                       median(waits)));
  }

  /// Half-width, relative, within which 90 % of the residuals lie.
  static double interval_of(const std::vector<double>& residuals) {
    constexpr double share = 0.9, least = 0.01;
    return std::max(least, quantile(residuals, share));
  }

  void fit_intervals() {
    if (!kernel_residuals_.empty()) profile().uncertainty.compute = interval_of(kernel_residuals_);
    if (!transfer_residuals_.empty())
      profile().uncertainty.communication = interval_of(transfer_residuals_);
    fitted("uncertainty",
           fmt::format("{} of compute, {} of communication", percent(profile().uncertainty.compute),
                       percent(profile().uncertainty.communication)),
           kernel_residuals_.size() + transfer_residuals_.size());
  }

  const std::vector<measurement_set>& sets_;
  const std::vector<log_set>& logs_;
  calibration result_;
  std::vector<double> kernel_residuals_, transfer_residuals_, residuals_of_transport_;
};

}  // namespace

calibration calibrate(const device_profile& prior, const std::vector<measurement_set>& sets,
                      const std::vector<log_set>& logs) {
  if (sets.empty() && logs.empty())
    throw input_error("nothing to fit to: expected measurements or nccl-tests logs");
  return calibrating(prior, sets, logs).run();
}

}  // namespace attnsim
