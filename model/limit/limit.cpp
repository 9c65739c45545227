#include "model/limit/limit.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <queue>
#include <span>

#include "model/attention/heads.hpp"
#include "model/attention/tokens.hpp"
#include "model/cost/kernel.hpp"
#include "model/cost/workload.hpp"
#include "model/limit/crossing.hpp"
#include "model/limit/cuts.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {
namespace {

/// The ranks that share the heads: of tensor-parallel ones the last of each place, whose shares are the smallest.
struct sharing_ranks {
  attention problem;
  head_range heads;
  std::vector<int> devices;
  std::vector<double> tokens;  ///< at home on each
};

std::vector<double> tokens_at_home(const attention& a, const strategy& s, std::size_t ranks) {
  std::vector<double> tokens(ranks, 1);
  if (s.shares.empty()) return tokens;
  const auto chunks = s.shares.size(), members = ranks / chunks;
  const auto unit =
      layout_unit(s.tokens, static_cast<std::int64_t>(ranks), static_cast<std::int64_t>(members)) /
      static_cast<std::int64_t>(chunks);
  const auto shared = with_shares(a, s.shares, s.tokens, unit);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    tokens[rank] = static_cast<double>(shared.shares[rank / members]);
  return tokens;
}

sharing_ranks sharing(const attention& a, const strategy& s, const std::vector<int>& devices) {
  const auto tp = static_cast<std::size_t>(s.tensor_parallel);
  sharing_ranks all{a, share_of(all_heads(a), s.tensor_parallel, s.tensor_parallel - 1), {}, {}};
  for (auto rank = tp - 1; rank < devices.size(); rank += tp) all.devices.push_back(devices[rank]);
  all.tokens = tokens_at_home(a, s, all.devices.size());
  return all;
}

/// (query, key) pairs a second of a device of full speed, by head.
double pair_rate(const cluster& c, const attention& a, const strategy& s, pass_kind pass) {
  const auto* kernel = c.device.kernel(s.kernel, a.dtype);
  const auto operations = operations_a_pair(pass, a.head_dim, a.value_dim());
  const double boost =
      kernel && s.start != run_start::in_sequence ? std::max(1.0, kernel->boost) : 1;
  const double rate =
      boost * highest_rate(c.device, kernel, a.dtype, pass, operations / operations_a_pair(pass, 1))
                  .value();
  return std::min(rate, std::max(c.device.peak(a.dtype).value(), rate / boost)) / operations;
}

/// What a cut divides; nothing where tokens may lie so that nothing needs to cross. A cached prefix is left out: it may lie where
/// it is needed, as with Ulysses.
divided_heads divided(const sharing_ranks& r, pass_kind pass) {
  const auto& a = r.problem;
  const bool anywhere = a.window > 0 || !a.documents.empty() || a.padding > 0;
  if (anywhere) return {};
  const auto bytes = [&](tensor t) {
    return static_cast<double>(token_bytes(a, t, precision::wire, r.heads));
  };
  const bool forward = pass == pass_kind::forward;
  double column =
      bytes(forward ? tensor::k : tensor::d_k) + bytes(forward ? tensor::v : tensor::d_v);
  if (forward && a.latent_rank > 0) column = std::min(column, bytes(tensor::latent));
  const double units = static_cast<double>(r.heads.keys * a.batch);
  divided_heads d{
      .units = units,
      .group = static_cast<double>(r.heads.queries) / static_cast<double>(r.heads.keys),
      .row = (bytes(forward ? tensor::q : tensor::d_o) + bytes(forward ? tensor::o : tensor::d_q)) /
             units,
      .column = column / units,
      .rows = static_cast<double>(a.sequence),
      .columns = static_cast<double>(a.kv_sequence > 0 ? a.kv_sequence : a.sequence),
      .causal = a.mask == mask_kind::causal};
  return d;
}

/// Prices of a pair in bytes, from next to nothing to more than any pair can cost, and those at which the best changes.
std::vector<double> prices(const divided_heads& d) {
  constexpr double finest = 1e-4, step = 1.25;
  auto all = turning_prices(d);
  all.push_back(0);
  const double scale = (d.row + d.column) / (d.group * d.rows);
  for (double price = finest; price < 1 / finest; price *= step) all.push_back(price * scale);
  return all;
}

/// The least time of a cut, of which A has so much of the tokens and B so much of the speed.
double least_time(divided_heads d, double share, double rate_of_rest, double bytes_a_second) {
  d.share = share;
  const double all = d.pairs();
  double most = 0;
  for (const double price : prices(d))
    most = std::max(
        most, (price * all + least_crossing(d, price)) / (bytes_a_second + price * rate_of_rest));
  return most;
}

/// The least time in which parts of the tokens, which are all of them, exchange what they need to compute everything.
double least_time(divided_heads d, const std::vector<double>& shares, double bytes_a_second) {
  double most = 0;
  d.share = shares.front();
  for (const double price : prices(d)) {
    double bytes = price * d.pairs();
    double known_share = -1, known = 0;  // most are alike
    for (const double share : shares) {
      if (share != known_share) {
        d.share = known_share = share;
        known = least_crossing(d, price);
      }
      bytes += known;
    }
    most = std::max(most, bytes / bytes_a_second);
  }
  return most;
}

/// The links' latencies on the shortest way from the first device to the one furthest from it.
double furthest(const network& net, const std::vector<int>& devices) {
  const auto links = net.links();
  std::vector<std::size_t> end(net.vertices().size());  // of the vertex's links in `out`
  for (const auto& l : links) ++end[l.from];
  std::partial_sum(end.begin(), end.end(), end.begin());
  auto begin = end;
  std::vector<link_id> out(links.size());
  for (link_id l = 0; l < links.size(); ++l) out[--begin[links[l].from]] = l;
  std::vector<double> known(net.vertices().size(), std::numeric_limits<double>::infinity());
  using arrival = std::pair<double, vertex_id>;
  std::priority_queue<arrival, std::vector<arrival>, std::greater<>> next;
  next.emplace(0, net.device(devices.front()));
  while (!next.empty()) {
    const auto [time, v] = next.top();
    next.pop();
    if (time >= known[v]) continue;
    known[v] = time;
    for (auto l = begin[v]; l < end[v]; ++l) {
      const auto& link = links[out[l]];
      if (const double then = time + link.latency.value(); then < known[link.to])
        next.emplace(then, link.to);
    }
  }
  double most = 0;
  for (const int d : devices) most = std::max(most, known[net.device(d)]);
  return most;
}

class limit_search {
 public:
  limit_search(const cluster& c, const strategy& s, const sharing_ranks& ranks, pass_kind pass)
      : c_(c), ranks_(ranks), pass_(pass), rate_(pair_rate(c, ranks.problem, s, pass)) {
    speeds_.assign(static_cast<std::size_t>(c.devices()) + 1, 0);
    tokens_.assign(speeds_.size(), 0);
    for (std::size_t i = 0; i < ranks.devices.size(); ++i) {
      const auto d = static_cast<std::size_t>(ranks.devices[i]);
      speeds_[d + 1] = c.device_speed[d];
      tokens_[d + 1] = ranks.tokens[i];
    }
    for (std::size_t i = 1; i < speeds_.size(); ++i) {
      speeds_[i] += speeds_[i - 1];
      tokens_[i] += tokens_[i - 1];
    }
  }

  time_limit run(bool whole_queries) {
    const auto& a = ranks_.problem;
    const double pairs =
        static_cast<double>(visible_pairs_of_batch(a)) * static_cast<double>(ranks_.heads.queries);
    limit_ = {seconds(pairs / (rate_ * speeds_.back())), "work"};
    const auto d = divided(ranks_, pass_);
    if (whole_queries || d.units == 0 || ranks_.devices.size() < 2) return limit_;
    const auto far = furthest(c_.network, ranks_.devices);
    const seconds latency(a.mask == mask_kind::full ? far : far / 2);
    if (latency > limit_.time) limit_ = {latency, "latency"};
    const auto cuts = cuts_of(c_.network, ranks_.devices, reachable_shares(c_.device));
    std::map<std::array<double, 3>, double> times;  // most are alike
    for (const auto& one : cuts) {
      const std::array alike{inside(one, speeds_), inside(one, tokens_),
                             (one.out + one.in).value()};
      const auto [time, is_new] = times.try_emplace(alike);
      if (is_new) time->second = of(d, one);
      raise(time->second, one, false);
    }
    for (auto one = cuts.begin(); one != cuts.end();) {
      const auto end = std::find_if(
          one, cuts.end(), [&](const cut& other) { return other.partition != one->partition; });
      if (one->partition >= 0)
        raise(of_parts(d, {&*one, static_cast<std::size_t>(end - one)}), *one, true);
      one = end;
    }
    if (narrowest_)
      limit_.bound_by =
          name_of(c_.network, *narrowest_) + (all_parts_ ? " and the others alike" : "");
    return limit_;
  }

 private:
  void raise(double time, const cut& by, bool all_parts) {
    if (seconds(time) <= limit_.time) return;
    limit_.time = seconds(time);
    narrowest_ = &by;
    all_parts_ = all_parts;
  }

  static double inside(const cut& one, const std::vector<double>& sums) {
    return sums[static_cast<std::size_t>(one.last) + 1] - sums[static_cast<std::size_t>(one.first)];
  }

  double of_parts(const divided_heads& d, std::span<const cut> parts) const {
    std::vector<double> shares;
    double bytes_a_second = 0;
    for (const auto& one : parts) {
      shares.push_back(inside(one, tokens_) / tokens_.back());
      bytes_a_second += (one.out + one.in).value();
    }
    return least_time(d, shares, bytes_a_second);
  }

  double of(const divided_heads& d, const cut& one) const {
    const double speed = inside(one, speeds_), share = inside(one, tokens_) / tokens_.back();
    const double both_ways = (one.out + one.in).value();
    return std::max(least_time(d, share, rate_ * (speeds_.back() - speed), both_ways),
                    least_time(d, 1 - share, rate_ * speed, both_ways));
  }

  const cluster& c_;
  const sharing_ranks& ranks_;
  pass_kind pass_;
  double rate_;
  std::vector<double> speeds_, tokens_;  ///< of the devices of lower number
  time_limit limit_;
  const cut* narrowest_ = nullptr;  ///< by which it is; null: by none
  bool all_parts_ = false;
};

}  // namespace

time_limit limit_of(const cluster& c, const attention& a, const strategy& s,
                    const std::vector<int>& devices, pass_kind pass) {
  const auto ranks = sharing(a, s, devices);
  return limit_search(c, s, ranks, pass).run(find_algorithm(s.schedule).whole_queries);
}

time_limit known_limits::of(const strategy& s, const std::vector<int>& devices, pass_kind pass) {
  if (!s.shares.empty()) return limit_of(cluster_, problem_, s, devices, pass);
  auto ranks = sharing(problem_, s, devices);
  const int first = ranks.devices.front();
  std::sort(ranks.devices.begin(), ranks.devices.end());
  key wanted{find_algorithm(s.schedule).whole_queries,
             s.kernel,
             s.start,
             s.tensor_parallel,
             pass,
             first,
             std::move(ranks.devices)};
  const std::lock_guard lock(guard_);
  const auto known = known_.find(wanted);
  if (known != known_.end()) return known->second;
  return known_.emplace(std::move(wanted), limit_of(cluster_, problem_, s, devices, pass))
      .first->second;
}

}  // namespace attnsim
