#include "ask/fastest_tokens.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ask/predict.hpp"
#include "model/cost/workload.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

/// With every layout that the sequence fits, the usual one first. Throws infeasible where it fits none: with the least padding.
std::vector<strategy> laid_out(const question& q, const attention& a, int ranks) {
  const auto usual = complete(strategy_of(q, a), a, ranks);
  const int chunks = ranks / usual.tensor_parallel;
  const std::array layouts{usual.tokens, token_layout::zigzag, token_layout::striped,
                           token_layout::contiguous};
  std::vector<strategy> result;
  for (const auto tokens : layouts) {
    const bool seen = std::any_of(result.begin(), result.end(),
                                  [&](const strategy& s) { return s.tokens == tokens; });
    if (seen || padded_sequence(a.sequence, tokens, chunks, usual.ulysses) != a.sequence) continue;
    auto asked = q;
    asked.tokens = tokens;
    result.push_back(strategy_of(asked, a));
  }
  if (result.empty())
    require_layout(a, nearest_layout(a, layouts, chunks, usual.ulysses), chunks, usual.ulysses);
  return result;
}

/// Whether what its last rank computes, which the closed form follows too, takes longer by itself.
bool computes_longer(strategy s, seconds than, const attention& a, int ranks, pass_kind asked,
                     shared_work& work) {
  constexpr double rounding = 1e-9;
  s = complete(std::move(s), a, ranks);
  seconds all;
  for (const auto pass : passes_of(asked))
    all += computation(*work.schedule(a, s, pass).priced) / work.on().fastest_device();
  return all > than * (1 + rounding);
}

}  // namespace

strategy with_fastest_tokens(const question& q, const attention& a, int ranks, shared_work& work) {
  check(a);
  const auto& asked = find_algorithm(q.schedule);
  const bool open = !q.tokens && a.mask == mask_kind::causal && a.documents.empty() &&
                    !asked.whole_queries && !asked.for_windows && q.shares.empty();
  const auto layouts = open ? laid_out(q, a, ranks) : std::vector<strategy>{};
  if (layouts.empty()) return strategy_of(q, a);
  const auto time_of = [&](const strategy& s, prediction_method by) {
    return predict_times(a, s, ranks, q.pass, by, work).time;
  };
  const auto usual = time_of(layouts.front(), prediction_method::analytic);
  std::vector<std::pair<seconds, const strategy*>> estimates{{usual, &layouts.front()}};
  std::vector<const strategy*> longer;  // need no estimate to come after the usual one
  for (auto s = layouts.begin() + 1; s != layouts.end(); ++s) {
    if (computes_longer(*s, usual, a, ranks, q.pass, work)) {
      longer.push_back(&*s);
    } else {
      estimates.emplace_back(time_of(*s, prediction_method::analytic), &*s);
    }
  }
  const auto sooner = [](const auto& x, const auto& y) { return x.first < y.first; };
  if (std::min_element(estimates.begin(), estimates.end(), sooner) == estimates.begin())
    return layouts.front();
  for (const auto* s : longer) estimates.emplace_back(time_of(*s, prediction_method::analytic), s);
  std::sort(estimates.begin(), estimates.end());  // of equal ones the earlier layout
  auto fastest = estimates.front();
  if (q.by == prediction_method::analytic) return *fastest.second;
  fastest.first = time_of(*fastest.second, q.by);
  for (auto next = estimates.begin() + 1; next != estimates.end(); ++next) {
    if (next->first >= fastest.first) break;
    fastest = std::min(fastest, {time_of(*next->second, q.by), next->second}, sooner);
  }
  return *fastest.second;
}

}  // namespace attnsim::ask
