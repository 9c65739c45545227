#include "ask/crossing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/attention/heads.hpp"
#include "model/cost/workload.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

/// "128K", "1M" where the number is a multiple, as a question takes it.
std::string short_count(std::int64_t n) {
  constexpr std::int64_t kibi = 1 << 10, mebi = 1 << 20;
  if (n % mebi == 0) return fmt::format("{}M", n / mebi);
  if (n % kibi == 0) return fmt::format("{}K", n / kibi);
  return fmt::format("{}", n);
}

/// By the closed form; zero where it is not possible.
seconds time_at(const cluster& c, const prediction& p, attention problem) {
  problem.batch /= p.data_parallel;
  seconds time;
  try {
    for (const auto& one : p.passes) {
      time += predict(c, problem, p.chosen, p.ranks / p.data_parallel, one.pass,
                      prediction_method::analytic)
                  .time;
    }
  } catch (const infeasible&) {
    return {};
  } catch (const input_error&) {
    return {};
  }
  return time;
}

attention of_length(attention problem, std::int64_t sequence) {
  problem.sequence = sequence;
  return problem;
}

/// The same tokens in all, of which so many are new.
attention with_new_tokens(attention problem, std::int64_t tokens) {
  problem.prefix = problem.tokens(token_side::keys) - tokens;
  problem.sequence = tokens;
  return problem;
}

bool passes(const prediction& p) {
  return !find_algorithm(p.chosen.schedule).whole_queries;
}

/// By what its formula says of a forward pass.
std::string passed_by(const strategy& s) {
  const auto& chosen = find_algorithm(s.schedule);
  if (s.rows * s.cols == 1 || !chosen.sends) return "heads";
  const auto sends_any = [&](const chunk_bytes& bytes) {
    const auto parts = chosen.sends(s, bytes, pass_kind::forward).parts;
    return std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.bytes > 0; });
  };
  const bool keys = sends_any({.keys = 1}), queries = sends_any({.queries = 1});
  return keys && queries ? "both" : keys ? "keys" : "queries";
}

/// T over S where T (q + o + lse) = S (k + v).
double even_bytes(const attention& a, const strategy& s) {
  const auto of = [&](tensor t, precision format = precision::wire) {
    return static_cast<double>(token_bytes(a, t, format, all_heads(a)));
  };
  return (of(tensor::k) + of(tensor::v)) /
         (of(tensor::q) + of(tensor::o, s.partials) + of(tensor::lse));
}

/// Of ranks that have each so many new tokens, from which value on the kernel's times are those of few rows (key_split).
void note_assumed(pass_crossing& x, const key_split& law, std::int64_t all, std::int64_t places) {
  if (law.assumed.empty()) return;
  for (std::size_t i = 0; i < x.times.values.size() && !x.assumed_from; ++i) {
    if ((all >> i) / places < 2 * law.rows) x.assumed_from = i;
  }
  if (x.assumed_from) x.assumed = law.assumed;
}

}  // namespace

crossing over_sequences(const cluster& c, const std::vector<prediction>& ranked,
                        std::string (*name)(const prediction&)) {
  crossing result{.of = "tokens"};
  std::vector<std::int64_t> lengths;
  const auto asked = ranked[0].problem.sequence;
  for (int power = -4; power <= 4; ++power) {
    const auto length = power < 0 ? asked >> -power : asked << power;
    if (length == 0) continue;
    if (power == 0) result.asked = static_cast<int>(lengths.size());
    lengths.push_back(length);
    result.values.push_back(short_count(length));
  }
  std::set<std::string> done;
  for (const auto& p : ranked) {
    if (!done.insert(p.chosen.schedule).second) continue;
    std::vector<seconds> times;
    for (const auto length : lengths) times.push_back(time_at(c, p, of_length(p.problem, length)));
    result.times.emplace_back(name(p), std::move(times));
  }
  return result;
}

bool passes_any(const std::vector<prediction>& ranked) {
  return std::any_of(ranked.begin(), ranked.end(), passes);
}

pass_crossing over_new_tokens(const cluster& c, const std::vector<prediction>& ranked) {
  constexpr int halvings = 8;
  const auto& asked = ranked[0].problem;
  const auto all = asked.tokens(token_side::keys);
  pass_crossing result{.times = {.of = "new / all tokens"},
                       .even_bytes = even_bytes(asked, ranked[0].chosen)};
  auto& x = result.times;
  for (int i = 0; i <= halvings; ++i) {
    if (all >> i == asked.sequence) x.asked = i;
    x.values.push_back(i == 0 ? "1" : fmt::format("1/{}", 1 << i));
  }
  const auto first = std::find_if(ranked.begin(), ranked.end(), passes);
  const auto* kernel = c.device.kernel(first->chosen.kernel, asked.dtype);
  const auto places = first->ranks / first->data_parallel / first->chosen.tensor_parallel;
  if (kernel) note_assumed(result, kernel->split, all, places);
  for (const auto* name : {"keys", "queries", "both", "heads"})
    x.times.emplace_back(name, std::vector<seconds>(x.values.size()));
  for (const auto& p : ranked) {
    if (!passes(p)) continue;
    auto& best = std::find_if(x.times.begin(), x.times.end(), [&](const auto& one) {
                   return one.first == passed_by(p.chosen);
                 })->second;
    for (int i = 0; i <= halvings; ++i) {
      const auto time = time_at(c, p, with_new_tokens(p.problem, all >> i));
      auto& least = best[static_cast<std::size_t>(i)];
      if (least == seconds{} || (time > seconds{} && time < least)) least = time;
    }
  }
  std::erase_if(x.times, [](const auto& one) {
    return std::all_of(one.second.begin(), one.second.end(),
                       [](seconds t) { return t == seconds{}; });
  });
  return result;
}

std::optional<std::size_t> pass_crossing::first_of_queries() const {
  auto contest = times;
  std::erase_if(contest.times,
                [](const auto& one) { return one.first != "keys" && one.first != "queries"; });
  std::optional<std::size_t> first;
  for (auto value = times.values.size(); value-- > 0;) {
    const auto best = contest.best(value);
    if (best == "keys") break;
    if (best) first = value;
  }
  return first;
}

crossing crossing_of(const what_if_answer& w) {
  crossing times{.of = w.varied.key, .values = w.varied.values};
  for (const auto& [name, of_schedule] : w.schedules) times.times.emplace_back(name, of_schedule);
  return times;
}

std::optional<std::string> crossing::best(std::size_t value) const {
  std::optional<std::string> name;
  seconds least;
  for (const auto& [of, at] : times) {
    if (at[value] == seconds{} || (name && at[value] >= least)) continue;
    least = at[value];
    name = of;
  }
  return name;
}

}  // namespace attnsim::ask
