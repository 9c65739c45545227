#include "report/crossovers.hpp"

#include <fmt/format.h>

#include <set>

#include "model/error.hpp"
#include "report/chart.hpp"
#include "report/results.hpp"

namespace attnsim::report {
namespace {

/// "128K", "1M" where the number is a multiple, as --seq takes it.
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

crossing over_sequences(const cluster& c, const std::vector<prediction>& ranked) {
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
    result.times.emplace_back(name_of(p), std::move(times));
  }
  return result;
}

section crossovers(const crossing& x, const std::string& note) {
  std::vector<std::string> header{x.of, "best"};
  auto lines = json::array();
  for (const auto& [name, times] : x.times) {
    header.push_back(name);
    auto values = json::array();
    for (const auto t : times) values.push_back(t > seconds{} ? json(t.value()) : json());
    lines.push_back({{"name", name}, {"values", values}});
  }
  section s{.title = "Crossovers", .note = note, .rows = table(header)};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    std::vector<std::string> row{x.values[i], "-"};
    seconds best{1e300};
    for (const auto& [name, times] : x.times) {
      row.push_back(times[i] > seconds{} ? to_string(times[i]) : "-");
      if (times[i] > seconds{} && times[i] < best) best = times[i], row[1] = name;
    }
    s.rows.add(row);
  }
  s.chart = {{"kind", "lines"},    {"unit", "s"},      {"of", x.of},
             {"values", x.values}, {"asked", x.asked}, {"lines", lines}};
  return s;
}

}  // namespace attnsim::report
