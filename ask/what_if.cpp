#include "ask/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

std::vector<std::string> all_schedules() {
  std::vector<std::string> names;
  for (const auto& a : algorithms()) names.emplace_back(a.name);
  return names;
}

seconds best_time(const std::vector<prediction>& ranked, const std::string& schedule) {
  const auto found = std::find_if(ranked.begin(), ranked.end(), [&](const prediction& p) {
    return p.chosen.schedule == schedule;
  });
  return found == ranked.end() ? seconds{} : found->time;
}

}  // namespace

what_if parse_what_if(const std::string& text) {
  const auto equals = text.find('='), dots = text.find("..");
  const auto fail = [&] {
    return input_error(asked("what-if"), text,
                       "expected key=from..to, such as seq=64K..1M or "
                       "nics.bandwidth=\"100 Gb/s\"..\"1600 Gb/s\"");
  };
  if (equals == std::string::npos || dots == std::string::npos || dots < equals) throw fail();
  const auto split = [&](std::string value) {
    std::erase(value, '"');
    const auto end = value.find_first_not_of("0123456789.");
    const auto number = value.substr(0, end);
    double parsed = 0;
    const auto [rest, error] =
        std::from_chars(number.data(), number.data() + number.size(), parsed);
    if (error != std::errc{} || rest != number.data() + number.size()) throw fail();
    return std::pair(parsed, end == std::string::npos ? "" : value.substr(end));
  };
  auto [value, unit] = split(text.substr(equals + 1, dots - equals - 1));
  auto [last, last_unit] = split(text.substr(dots + 2));
  if (unit == "K" && last_unit == "M") last *= 1024, last_unit = unit;
  if (unit != last_unit || value <= 0 || value > last) throw fail();
  what_if varied{.key = text.substr(0, equals)};
  for (; value <= last; value *= 2) varied.values.push_back(fmt::format("{}{}", value, unit));
  return varied;
}

std::vector<what_if_answer::change> what_if_answer::changes() const {
  std::vector<change> result;
  for (std::size_t i = 1; i < best.size(); ++i) {
    const auto &before = best[i - 1].chosen.schedule, &now = best[i].chosen.schedule;
    if (before != now) result.push_back({i, before, now});
  }
  return result;
}

what_if_answer answer(const question& q, const what_if& varied,
                      const std::vector<std::string>& schedules) {
  what_if_answer result{.varied = varied};
  for (const auto& name : schedules.empty() ? all_schedules() : schedules)
    result.schedules.push_back({name, {}});
  for (const auto& value : varied.values) {
    auto at = q;
    set_key(at, varied.key, value);
    const auto c = cluster_of(at);
    const auto ranked = plan(c, plan_of(at, ranks_of(at, c), schedules)).candidates;
    result.best.push_back(ranked.front());
    for (auto& [name, times] : result.schedules) times.push_back(best_time(ranked, name));
  }
  return result;
}

}  // namespace attnsim::ask
