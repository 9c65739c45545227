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
    std::vector<std::pair<double, double>> points;  // bytes, seconds
    std::vector<std::string> names;
    each<memory_point>(sets_, [&](const auto& p, const auto& m, const auto&) {
      points.emplace_back(static_cast<double>(memory_traffic(p)), m.median());
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
    if (in_cache > 0) {
      profile().cache_bandwidth = profile().memory_bandwidth * (1 / fit.parameters[2]);
      fitted("cache bandwidth", to_string(profile().cache_bandwidth),
             static_cast<std::size_t>(in_cache));
    }
    name_outliers(fit, names);
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
    std::string name;
  };

  static cluster without_costs(const cluster& c) {
    auto bare = c;
    for (auto& t : bare.device.transports) t = transport_profile{};
    return bare;
  }

  void add_row(std::vector<transfer_row>& rows, link_kind kind, const transfer_point& p,
               const cluster& bare, double time, const std::string& name) const {
    transfer_row row{.what = p, .flow = flow_of(p, bare), .time = time, .name = name};
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
        add_row(rows, kind, *p, bare, m.median(), fmt::format("{}: {}", set.file, describe(*p)));
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
        add_row(rows, kind, p, bare, row.out_of_place.time_us * 1e-6,
                fmt::format("{}:{}: {}", set.file, row.line, describe(p)));
    }
  }

  // Messages (send, exchange, all-to-all) and rings are fitted apart: two systems of the same form.
  //   column   messages             rings
  //   fixed    latency              collective_latency
  //   step                          step_latency
  //   ramp     ramp                 collective_ramp
  //   rate     1 / efficiency       1 / collective_efficiency
  //   other    1 / one_way_eff.     1 / all_reduce_efficiency
  enum column { fixed, step, ramp, rate, other, columns };

  static bool is_other(const transfer_row& r) {
    return r.what.operation == transfer_kind::send || r.what.operation == transfer_kind::all_reduce;
  }

  static std::vector<column> columns_of(const std::vector<transfer_row>& rows) {
    std::set<column> used{fixed, ramp};
    std::set<double> rounds;
    for (const auto& r : rows) {
      used.insert(is_other(r) ? other : rate);
      rounds.insert(r.rounds);
    }
    if (rounds.size() > 1) used.insert(step);
    return {used.begin(), used.end()};
  }

  static linear_fit fit_rows(const std::vector<transfer_row>& rows, const message_ramp& shape,
                             const std::vector<column>& used) {
    const auto n = static_cast<Eigen::Index>(rows.size());
    Eigen::MatrixXd all = Eigen::MatrixXd::Zero(n, columns);
    Eigen::VectorXd time(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto& r = rows[static_cast<std::size_t>(i)];
      const double bytes = r.flow.bytes;
      all(i, fixed) = 1;
      all(i, step) = r.rounds;
      all(i, ramp) = shape.of(bytes).value();
      all(i, is_other(r) ? other : rate) = bytes * r.per_byte;
      time[i] = std::max(r.time - r.flow.latency.fixed.value(), 0.1 * r.time);
    }
    return robust_fit(all(Eigen::all, used), time);
  }

  void fit_transport(link_kind kind) {
    const auto where = fmt::format("transports.{}", name_of(kind));
    auto rows = rows_of(kind);
    const auto middle = std::stable_partition(rows.begin(), rows.end(),
                                              [](const auto& r) { return r.rounds == 0; });
    const std::vector<transfer_row> messages(rows.begin(), middle), rings(middle, rows.end());
    auto& t = profile().transports[static_cast<int>(kind)];
    fit_group(where, messages,
              {{"latency", &t.latency},
               {"", nullptr},
               {"ramp", &t.ramp.time},
               &t.ramp,
               {"efficiency", &t.efficiency},
               {"one_way_efficiency", &t.one_way_efficiency}});
    fit_group(where, rings,
              {{"collective_latency", &t.collective_latency},
               {"step_latency", &t.step_latency},
               {"collective_ramp", &t.collective_ramp.time},
               &t.collective_ramp,
               {"collective_efficiency", &t.collective_efficiency},
               {"all_reduce_efficiency", &t.all_reduce_efficiency}});
    const bool only_all_reduce =
        !rings.empty() &&
        std::all_of(rings.begin(), rings.end(), [](const auto& r) { return is_other(r); });
    if (only_all_reduce) {
      t.collective_efficiency = t.all_reduce_efficiency;
      result_.warnings.push_back(
          where +
          ": only all-reduce was measured; all-gather and reduce-scatter are taken to move "
          "data at its rate, which in-network reduction (NVLS, SHARP) makes faster than theirs");
    }
    fit_channels(kind, where);
    fit_sharing(kind, where);
    fit_messages(kind, where);
  }

  template <typename Value>
  struct named {
    const char* name;
    Value* to;
  };
  struct group_fields {
    named<seconds> fixed, step, ramp;
    message_ramp* shape;
    named<double> rate, other;
  };

  void fit_group(const std::string& where, const std::vector<transfer_row>& rows,
                 const group_fields& fields) {
    constexpr std::size_t enough = 4;
    if (rows.size() < enough)
      return kept(fmt::format("{}.{} and its like", where, fields.rate.name),
                  "fewer than 4 such transfers");
    const auto used = columns_of(rows);
    linear_fit best;
    double least = 0;
    for (const int order : {1, 2, 4}) {
      for (double bytes = 1 << 14; bytes <= (1 << 27); bytes *= std::sqrt(2.0)) {
        const message_ramp shape{.time = seconds(1), .bytes = bytes, .order = order};
        auto fit = fit_rows(rows, shape, used);
        const double size = capped_size(fit.residuals);
        if (best.residuals.empty() || size < least) {
          best = std::move(fit);
          least = size;
          *fields.shape = shape;
        }
      }
    }
    const auto take = [&](column c, const auto& field, auto convert) {
      const auto found = std::find(used.begin(), used.end(), c);
      if (!field.to) return;
      const auto name = fmt::format("{}.{}", where, field.name);
      const auto i = static_cast<std::size_t>(found - used.begin());
      if (found == used.end()) return kept(name, "no operations that tell it");
      if (!best.identifiable[i]) return kept(name, "the sizes measured do not tell it");
      fitted(name, convert(*field.to, best.parameters[static_cast<Eigen::Index>(i)]), rows.size());
    };
    const auto time = [](seconds& to, double x) { return to_string(to = seconds(x)); };
    const auto share = [](double& to, double x) {
      return fmt::format("{:.3f}", to = std::min(1.0, 1 / x));
    };
    take(fixed, fields.fixed, time);
    take(step, fields.step, time);
    take(ramp, fields.ramp, time);
    take(rate, fields.rate, share);
    take(other, fields.other, share);
    fitted(fmt::format("{}.{}.bytes, order", where, fields.ramp.name),
           fmt::format("{}, {}", to_string(byte_count(std::llround(fields.shape->bytes))),
                       fields.shape->order),
           rows.size(), ", residuals " + percent(best.deviation));
    std::vector<std::string> names;
    for (const auto& r : rows) names.push_back(r.name);
    name_outliers(best, names);
    for (const double r : best.residuals) transfer_residuals_.push_back(std::abs(r));
  }

  /// From transfers with few multiprocessors, which no link limits.
  void fit_channels(link_kind kind, const std::string& where) {
    auto& t = profile().transports[static_cast<int>(kind)];
    std::vector<double> rates;
    each<transfer_point>(sets_, [&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.processors == 0 || p.operation != transfer_kind::exchange) return;
      const auto flow = flow_of(p, without_costs(*set.on));
      if (flow.transport != kind) return;
      const double moving = m.median() - t.latency.value() - t.ramp.time.value();
      const double link = 1 / flow.seconds_a_byte(set.on->network);
      const double full = t.efficiency * link;
      const double rate = static_cast<double>(p.bytes) / moving;
      if (rate < 0.6 * full && p.bytes > t.ramp.bytes * 16)
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
      if (moving > 0 && p.bytes >= t.ramp.bytes) shares.push_back(std::min(1.0, link / moving));
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
      if (!set.on || p.also == 0 || static_cast<double>(p.bytes) < t.ramp.bytes) return;
      auto on = *set.on;
      on.device = profile();
      const auto flow = flow_of(p, on);
      if (flow.transport != kind) return;
      const double alone = flow.bytes * flow.seconds_a_byte(on.network);
      const double moving = m.median() - flow.latency.of(flow.bytes).value();
      if (moving > 0) shares.push_back(std::min(1.0, alone / moving));
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

  void fit_intervals() {
    constexpr double share = 0.9;
    if (!kernel_residuals_.empty())
      profile().uncertainty.compute = std::max(0.01, quantile(kernel_residuals_, share));
    if (!transfer_residuals_.empty())
      profile().uncertainty.communication = std::max(0.01, quantile(transfer_residuals_, share));
    fitted("uncertainty",
           fmt::format("{} of compute, {} of communication", percent(profile().uncertainty.compute),
                       percent(profile().uncertainty.communication)),
           kernel_residuals_.size() + transfer_residuals_.size());
  }

  const std::vector<measurement_set>& sets_;
  const std::vector<log_set>& logs_;
  calibration result_;
  std::vector<double> kernel_residuals_, transfer_residuals_;
};

}  // namespace

calibration calibrate(const device_profile& prior, const std::vector<measurement_set>& sets,
                      const std::vector<log_set>& logs) {
  if (sets.empty() && logs.empty())
    throw input_error("nothing to fit to: expected measurements or nccl-tests logs");
  return calibrating(prior, sets, logs).run();
}

}  // namespace attnsim
