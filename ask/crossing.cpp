#include "ask/crossing.hpp"

#include <fmt/format.h>

#include <set>

#include "model/error.hpp"

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
seconds time_at(const cluster& c, const prediction& p, std::int64_t sequence) {
  auto problem = p.problem;
  problem.sequence = sequence;
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
    for (const auto length : lengths) times.push_back(time_at(c, p, length));
    result.times.emplace_back(name(p), std::move(times));
  }
  return result;
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
