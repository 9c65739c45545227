// Transports: latency, ramp and rate of messages and rings, and what several at once reach.
#include "calibrate/fitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibrate/predicted.hpp"
#include "model/cost/collective.hpp"
#include "model/error.hpp"
#include "model/median.hpp"

namespace attnsim {
namespace {

class transport_fits {
 public:
  explicit transport_fits(fitting& f) : f_(f) {}

  void run() {
    for (const auto kind :
         {link_kind::nvlink, link_kind::pcie, link_kind::host_memory, link_kind::network})
      fit_transport(kind);
  }

 private:
  /// One timed transfer: time = known + latency's parameters + ramp + bytes over a rate.
  struct transfer_row {
    transfer_point what;
    collective_flow flow;  ///< on links of full efficiency, without the transport's latencies
    double rounds = 0;     ///< of a ring
    double per_byte = 0;   ///< seconds, on links of full efficiency
    double time = 0;
    bool steady = false;  ///< seen several times, half of them within three tenths
    double spread = 0;    ///< of its rounds: within it are nine of ten, relative to their median
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

  static double spread_of(const measurement& m) {
    std::vector<double> off;
    for (const double t : m.samples.at("time_s")) off.push_back(std::abs(t / m.median() - 1));
    return quantile(off, 0.9);
  }

  /// Half-width of a 90 % interval around a median of three rounds, which spread as those of most transfers do.
  static double noise_of(const std::vector<transfer_row>& rows) {
    std::vector<double> spreads;
    for (const auto& r : rows) {
      if (r.spread > 0) spreads.push_back(r.spread);
    }
    const double of_a_median = 1.25 / std::sqrt(3.0);
    return spreads.empty() ? 0 : of_a_median * median(spreads);
  }

  /// An all-reduce that is faster than a ring can be goes to `set_aside` where that is given: it was none.
  void add_row(std::vector<transfer_row>& rows, link_kind kind, const transfer_point& p,
               const cluster& bare, double time, bool steady, const std::string& name,
               std::vector<transfer_row>* set_aside = nullptr) const {
    transfer_row row{
        .what = p, .flow = flow_of(p, bare), .time = time, .steady = steady, .name = name};
    if (row.flow.transport != kind) return;
    const bool ring = p.operation == transfer_kind::all_gather ||
                      p.operation == transfer_kind::reduce_scatter ||
                      p.operation == transfer_kind::all_reduce;
    if (ring) row.rounds = (p.operation == transfer_kind::all_reduce ? 2 : 1) * (p.members - 1);
    row.per_byte = row.flow.seconds_a_byte(bare.network);
    const double shortest = row.flow.bytes * row.per_byte;
    if (time < shortest && set_aside != nullptr && p.operation == transfer_kind::all_reduce) {
      set_aside->push_back(std::move(row));
      return;
    }
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
    for (const auto& set : f_.sets) {
      if (!set.on) continue;
      const auto bare = without_costs(*set.on);
      for (const auto& m : set.data.points) {
        const auto* p = std::get_if<transfer_point>(&m.what);
        if (!p || p->channels > 0 || p->at_once > 1 || p->also > 0 || p->bytes == 0 ||
            m.rounds() == 0)
          continue;
        const auto before = rows.size();
        add_row(rows, kind, *p, bare, m.median(), is_steady(m),
                fmt::format("{}: {}", set.file, describe(*p)));
        if (rows.size() > before) rows.back().spread = spread_of(m);
      }
    }
    for (const auto& log : f_.logs) add_log(rows, kind, log);
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
    std::vector<transfer_row> faster;
    for (const auto& row : set.log.rows) {
      const transfer_point p{.operation = operation->second,
                             .members = ranks,
                             .bytes = whole ? row.bytes : row.bytes / ranks};
      if (p.bytes > 0)
        add_row(rows, kind, p, bare, row.out_of_place.time_us * 1e-6, false,
                fmt::format("{}:{}: {}", set.file, row.line, describe(p)), &faster);
    }
    if (faster.empty()) return;
    f_.result.warnings.push_back(fmt::format(
        "{} of {} rows are faster than a ring over these links can be, as where switches reduce "
        "(NVLS, SHARP) or nodes reduce first: set aside; the first is {}, {:.4g} us",
        faster.size(), set.log.rows.size(), faster.front().name, faster.front().time * 1e6));
  }

  // Messages (send, exchange, all-to-all) and rings are fitted apart; a send alone and an all-reduce have a rate and a ramp
  // of their own. The rate is that of the largest sizes, the latency that of the smallest, the ramp what is left at each size.

  static bool is_other(const transfer_row& r) {
    return r.what.operation == transfer_kind::send || r.what.operation == transfer_kind::all_reduce;
  }

  void fit_transport(link_kind kind) {
    const auto where = fmt::format("transports.{}", name_of(kind));
    auto rows = rows_of(kind);
    const auto all_rows = rows;
    const auto middle = std::stable_partition(rows.begin(), rows.end(),
                                              [](const auto& r) { return r.rounds == 0; });
    std::vector<transfer_row> messages(rows.begin(), middle), rings(middle, rows.end());
    auto& t = f_.profile().transports[static_cast<int>(kind)];
    residuals_.clear();
    if (!rings.empty()) t.pair = nullptr;
    fit_group(where, messages,
              {.latency = {"latency", &t.latency},
               .step = {"", nullptr},
               .usual = {"efficiency", &t.efficiency, &t.ramp},
               .other = {"one_way_efficiency", &t.one_way_efficiency, &t.one_way_ramp}});
    const bool among_many = std::any_of(messages.begin(), messages.end(), [](const auto& r) {
      return r.what.operation == transfer_kind::all_to_all && r.what.members > 2;
    });
    if (among_many) t.crowding = 0;  // fitted with the other messages
    fit_group(where, rings,
              {.latency = {"collective_latency", &t.collective_latency},
               .step = {"step_latency", &t.step_latency},
               .usual = {"collective_efficiency", &t.collective_efficiency, &t.collective_ramp},
               .other = {"all_reduce_efficiency", &t.all_reduce_efficiency, &t.all_reduce_ramp}});
    const bool only_all_reduce =
        !rings.empty() &&
        std::all_of(rings.begin(), rings.end(), [](const auto& r) { return is_other(r); });
    if (only_all_reduce) {
      f_.result.warnings.push_back(
          where +
          ": only all-reduce was measured, whose bus bandwidth in-network reduction (NVLS, SHARP) "
          "raises; all-gather and reduce-scatter keep the prior's rate: measure them");
    }
    if (!residuals_.empty()) {
      t.basis = basis::measured;
      t.uncertainty = std::hypot(interval_of(residuals_), noise_of(all_rows));
      f_.fitted(where + ".uncertainty", percent(t.uncertainty), residuals_.size());
    }
    f_.transfer_residuals.insert(f_.transfer_residuals.end(), residuals_.begin(), residuals_.end());
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
      return f_.kept(fmt::format("{}.{} and its like", where, fields.usual.name),
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
    if (rows.empty()) return f_.kept(name, "no operations that tell it");
    auto steady = rows;
    std::erase_if(steady, [](const auto& r) { return !r.steady; });
    if (sizes_of(steady) >= enough) rows = std::move(steady);
    const double most = largest_of(rows);
    std::erase_if(rows, [&](const auto& r) { return r.flow.bytes < large * most; });
    if (sizes_of(rows) < 2) return f_.kept(name, "only one large size");
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
    f_.fitted(name, fmt::format("{:.3f}", *field.to), rows.size(),
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
      f_.fitted(fmt::format("{}.{}", where, field.name), to_string(*field.to), used.size());
    };
    take(fields.latency, 0);
    if (stepped) take(fields.step, 1);
    if (fields.step.to && !stepped)
      f_.kept(fmt::format("{}.{}", where, fields.step.name), "no groups that tell it");
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
      std::vector<double> over, totals;  // of operations that share the ramp
      for (const auto* r : of_size) {
        if (size.steady && !r->steady) continue;
        const double steps = fields.step.to ? r->rounds * fields.step.to->value() : 0;
        over.push_back(rest_of(*r, fields) - fields.latency.to->value() - steps);
        totals.push_back(r->time);
      }
      size.over = median(over);
      size.total = median(totals);
      for (std::size_t j = 0; j < over.size(); ++j) size.each.push_back({over[j], totals[j]});
      sizes.push_back(size);
    }
    leave_out_far_off(sizes);
    if (sizes.size() < enough) return;
    std::vector<message_ramp::point> points;
    std::vector<double> residuals;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      points.push_back({sizes[i].bytes, seconds(sizes[i].over)});
      const double change = by_neighbours(sizes, i) - sizes[i].total + sizes[i].over;
      for (const auto& [over, total] : sizes[i].each)
        residuals.push_back(std::abs((change - over) / total));
    }
    *field.ramp = message_ramp(points);
    residuals_.insert(residuals_.end(), residuals.begin(), residuals.end());
    f_.fitted(fmt::format("{}.{}, ramp", where, field.name), fmt::format("{} sizes", sizes.size()),
              rows.size(),
              ", each from its neighbours " + percent(median(residuals)) + " off (median)");
  }

  struct ramp_size {
    double bytes = 0;
    double over = 0;   ///< seconds beyond latency and rate
    double total = 0;  ///< seconds
    bool steady = false;
    std::string name;
    std::vector<std::pair<double, double>> each;  ///< both, of every operation
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
      f_.result.outliers.push_back(
          fmt::format("{}: left out, its neighbours tell {:+.0f} %", sizes[at].name,
                      100 * (by_neighbours(sizes, at) / sizes[at].total - 1)));
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  /// From transfers with few channels, which no link limits.
  void fit_channels(link_kind kind, const std::string& where) {
    auto& t = f_.profile().transports[static_cast<int>(kind)];
    std::vector<double> rates;
    f_.each<transfer_point>([&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.channels == 0 || p.operation != transfer_kind::exchange) return;
      const auto flow = flow_of(p, without_costs(*set.on));
      if (flow.transport != kind) return;
      const double before = t.latency.value() + t.ramp.of(static_cast<double>(p.bytes)).value();
      const double moving = m.median() - before;
      const double link = 1 / flow.seconds_a_byte(set.on->network);
      const double full = t.efficiency * link;
      const double rate = static_cast<double>(p.bytes) / moving;
      if (rate < 0.6 * full && before < 0.1 * moving)
        rates.push_back(rate / channels_for_peers(p.channels));
    });
    if (rates.empty())
      return f_.kept(where + ".channels, channel_bandwidth", "no transfers with few channels");
    t.channel_bandwidth = bandwidth(median(rates));
    f_.fitted(where + ".channel_bandwidth", to_string(t.channel_bandwidth), rates.size());
  }

  /// From several transfers at once: what they reach together.
  void fit_sharing(link_kind kind, const std::string& where) {
    auto& t = f_.profile().transports[static_cast<int>(kind)];
    fit_sharing(kind, transfer_kind::exchange, where + ".shared_efficiency", t.shared_efficiency);
    fit_sharing(kind, transfer_kind::all_gather, where + ".collective_shared_efficiency",
                t.collective_shared_efficiency);
  }

  void fit_sharing(link_kind kind, transfer_kind operation, const std::string& name,
                   double& shared) {
    std::vector<double> shares;
    f_.each<transfer_point>([&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.at_once == 1 || p.also > 0 || p.operation != operation) return;
      const auto bare = flow_of(p, without_costs(*set.on));
      if (bare.transport != kind) return;
      const auto on = f_.measured_on(set);
      const double bytes = bare.bytes * p.at_once;
      const double moving = m.median() - flow_of(p, on).latency.of(bare.bytes).value();
      const double link = bytes * bare.seconds_a_byte(set.on->network);
      if (moving > 0.8 * m.median()) shares.push_back(std::min(1.0, link / moving));
    });
    if (shares.empty()) return f_.kept(name, "no large transfers of several at once");
    shared = median(shares);
    f_.fitted(name, fmt::format("{:.3f}", shared), shares.size());
  }

  /// From a long and a short message in one group.
  void fit_messages(link_kind kind, const std::string& where) {
    auto& t = f_.profile().transports[static_cast<int>(kind)];
    std::vector<double> shares;
    f_.each<transfer_point>([&](const auto& p, const auto& m, const auto& set) {
      if (!set.on || p.also == 0) return;
      const auto on = f_.measured_on(set);
      const auto flow = flow_of(p, on);
      if (flow.transport != kind) return;
      const double alone = flow.bytes * flow.seconds_a_byte(on.network);
      const double moving = m.median() - flow.latency.of(flow.bytes).value();
      if (moving > 0.8 * m.median()) shares.push_back(std::min(1.0, alone / moving));
    });
    if (shares.empty()) return f_.kept(where + ".message_share", "no two messages in one group");
    t.message_share = median(shares);
    f_.fitted(where + ".message_share", fmt::format("{:.3f}", t.message_share), shares.size());
  }

  fitting& f_;
  std::vector<double> residuals_;  ///< of the transport at hand
};

}  // namespace

void fit_transports(fitting& f) {
  transport_fits(f).run();
}

}  // namespace attnsim
