#include "ask/explain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "ask/frameworks.hpp"
#include "model/error.hpp"
#include "sim/parallel.hpp"

namespace attnsim::ask {
namespace {

pass_kind pass_of(const prediction& p) {
  if (p.passes.size() == 1) return p.passes.front().pass;
  return p.passes.size() == 2 ? pass_kind::both : pass_kind::recompute;
}

/// Of one data-parallel group.
prediction predict_again(const cluster& c, attention problem, const strategy& s,
                         const prediction& p, prediction_method by) {
  problem.batch /= p.data_parallel;
  return predict(c, problem, s, p.ranks / p.data_parallel, pass_of(p), by);
}

bool is_compute_bound(const cluster& c, const attention& problem, const prediction& p,
                      double share) {
  const auto there = predict_again(c, problem, p.chosen, p, prediction_method::analytic);
  return there.time - there.compute <= there.time * share;
}

cluster cluster_with(question q, const std::string& key, const std::string& value) {
  set_key(q, key, value);
  return cluster_of(q);
}

explained_candidate explained(const cluster& c, const cluster_by_bandwidth* others,
                              const prediction& p, const prediction& best) {
  explained_candidate e{.lacks = to_catch_up(p, best), .tokens = compute_bound_from(c, p)};
  if (others != nullptr) e.faster_network = compute_bound_above(*others, p);
  return e;
}

std::vector<explained_candidate> explain_all(const question& q, const cluster& c,
                                             const std::string& key,
                                             const std::vector<prediction>& ranked) {
  std::optional<cluster_by_bandwidth> others;
  try {
    others.emplace(q, key);
  } catch (const input_error&) {  // the file has no such key
  }
  std::vector<explained_candidate> all(ranked.size());
  std::vector<std::size_t> places(ranked.size());
  std::iota(places.begin(), places.end(), 0);
  parallel_for_each(places, [&](std::size_t i) {
    all[i] = explained(c, others ? &*others : nullptr, ranked[i], ranked.front());
  });
  return all;
}

template <typename Runs>
std::optional<std::size_t> first_of(const std::vector<prediction>& ranked, Runs runs) {
  const auto able = std::find_if(ranked.begin(), ranked.end(), runs);
  if (able == ranked.end()) return {};
  return able - ranked.begin();
}

usable_by with(const framework& f, const plan_result& plan) {
  const auto refusal = [&](const prediction& p) {
    return f.refusal(p.chosen, plan.problem, plan.pass);
  };
  return {f.name,
          first_of(plan.candidates, [&](const prediction& p) { return refusal(p).empty(); }),
          refusal(plan.candidates.front())};
}

usable_by with(const cp_comm_type& type, const plan_result& plan) {
  const auto& megatron = find_framework("megatron");
  return {type.name, first_of(plan.candidates, [&](const prediction& p) {
            return megatron.refusal(p.chosen, plan.problem, plan.pass).empty() &&
                   cp_comm_type_of(p.chosen).name == type.name;
          })};
}

std::vector<rejected_alike> alike(const std::vector<rejection>& list) {
  std::vector<rejected_alike> all;
  for (const auto& r : list) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const auto& one) {
      return one.schedule == r.candidate.schedule && one.reason == r.reason;
    });
    auto& of = known == all.end() ? all.emplace_back() : *known;
    of.schedule = r.candidate.schedule;
    of.reason = r.reason;
    of.candidates.push_back(r.candidate);
  }
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) {
    return std::tie(x.schedule, x.reason) < std::tie(y.schedule, y.reason);
  });
  return all;
}

}  // namespace

shortfall to_catch_up(const prediction& candidate, const prediction& best) {
  shortfall s{.behind = candidate.time - best.time};
  const bool launches = candidate.bottleneck.kind == "host";
  const auto factor = [&](seconds part) {
    return part > s.behind && !launches ? part / (part - s.behind) : 0;
  };
  s.network = factor(candidate.exposed_communication);
  s.kernels = factor(candidate.compute);
  return s;
}

cluster_by_bandwidth::cluster_by_bandwidth(const question& q, const std::string& key)
    : base_(cluster_with(q, key, "1 GB/s")) {
  const auto twice = cluster_with(q, key, "2 GB/s");
  const auto before = base_.network.links(), after = twice.network.links();
  for (link_id l = 0; l < before.size(); ++l) {
    const double more = after[l].capacity / before[l].capacity - 1;
    if (more > 0) links_.push_back({l, more});
  }
}

cluster cluster_by_bandwidth::at(bandwidth rate) const {
  auto c = base_;
  const double above = rate.value() / 1e9 - 1;
  for (const auto& [link, more] : links_) c.network.degrade(link, 1 + more * above);
  return c;
}

std::optional<std::int64_t> compute_bound_from(const cluster& c, const prediction& p,
                                               double share) {
  constexpr int most = 10;
  const std::int64_t unit = std::int64_t{2} * p.ranks;
  std::optional<std::int64_t> shortest;
  auto problem = p.problem;
  if (!problem.documents.empty() || problem.padding > 0) return shortest;
  for (int doublings = most; doublings >= -most; --doublings) {
    problem.sequence =
        doublings >= 0 ? p.problem.sequence << doublings : p.problem.sequence >> -doublings;
    if (!is_countable(problem)) continue;
    if (problem.sequence % unit != 0 || !is_compute_bound(c, problem, p, share)) break;
    shortest = problem.sequence;
  }
  return shortest;
}

std::optional<bandwidth> compute_bound_above(const cluster_by_bandwidth& clusters,
                                             const prediction& p, double share) {
  constexpr double precise = 1.01;
  double low = 1e8, high = 1e13;
  const auto is_enough = [&](double rate) {
    return is_compute_bound(clusters.at(bandwidth(rate)), p.problem, p, share);
  };
  if (!is_enough(high)) return {};
  while (high / low > precise) {
    const double middle = std::sqrt(low * high);
    (is_enough(middle) ? high : low) = middle;
  }
  return bandwidth(high);
}

prediction launched_late(const cluster& c, const prediction& p) {
  auto s = p.chosen;
  s.launch = launch_order::compute_first;
  return predict_again(c, p.problem, s, p, prediction_method::simulation);
}

explanation explain(const question& q, const cluster& c, const plan_result& plan) {
  const auto& best = plan.candidates.front();
  const bool one_node = c.devices_per_node >= best.ranks;
  explanation e{.bandwidth_key = one_node ? "node.bandwidth" : "nics.bandwidth"};
  e.candidates = explain_all(q, c, e.bandwidth_key, plan.candidates);
  e.late = launched_late(c, best);
  e.transport = one_node ? link_kind::nvlink : link_kind::network;
  for (const auto& f : frameworks()) e.frameworks.push_back(with(f, plan));
  for (const auto& type : cp_comm_types()) e.comm_types.push_back(with(type, plan));
  e.rejected = alike(plan.rejected);
  return e;
}

}  // namespace attnsim::ask
