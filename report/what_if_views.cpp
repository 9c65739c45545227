#include "report/what_if_views.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/crossovers.hpp"
#include "report/csv.hpp"
#include "report/results.hpp"

namespace attnsim::report {
namespace {

using ask::what_if_answer;

std::vector<std::string> lines_of_changes(const what_if_answer& w) {
  std::vector<std::string> lines;
  for (const auto& [at, from, to] : w.changes()) {
    lines.push_back(fmt::format("between {} and {} the best changes from {} to {}",
                                w.varied.values[at - 1], w.varied.values[at], from, to));
  }
  return lines;
}

}  // namespace

std::string to_table(const what_if_answer& w) {
  std::vector<std::string> header{w.varied.key, "best", "grid", "bound by"};
  for (const auto& [name, times] : w.schedules) header.push_back(name);
  table rows(header);
  for (std::size_t i = 0; i < w.best.size(); ++i) {
    const auto& best = w.best[i];
    std::vector<std::string> row{w.varied.values[i], best.chosen.schedule, grid_of(best.chosen),
                                 best.bottleneck.kind};
    for (const auto& [name, times] : w.schedules)
      row.push_back(times[i] > seconds{} ? to_string(times[i]) : "-");
    rows.add(row);
  }
  auto text = rows.str();
  for (const auto& line : lines_of_changes(w)) text += line + "\n";
  return text;
}

nlohmann::ordered_json to_json(const what_if_answer& w) {
  auto values = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < w.best.size(); ++i) {
    auto times = nlohmann::ordered_json::object();
    for (const auto& [name, of] : w.schedules) {
      if (of[i] > seconds{}) times[name] = of[i].value();
    }
    values.push_back({{"value", w.varied.values[i]},
                      {"best", to_json(w.best[i])},
                      {"time_s", std::move(times)}});
  }
  return {{"schema", "attnsim.what-if.1"}, {"key", w.varied.key}, {"values", values}};
}

std::string to_csv(const what_if_answer& w) {
  auto text = csv_line(w.varied.key, "schedule", "time_s") + "\n";
  for (std::size_t i = 0; i < w.varied.values.size(); ++i) {
    for (const auto& [name, times] : w.schedules) {
      if (times[i] > seconds{}) text += csv_line(w.varied.values[i], name, times[i].value()) + "\n";
    }
  }
  return text;
}

page page_of(const what_if_answer& w) {
  const auto where = lines_of_changes(w);
  return {.title = fmt::format("What if: {} on {}, {} ranks", w.varied.key, w.best[0].cluster,
                               w.best[0].ranks),
          .answer = where.empty() ? fmt::format("{} is the best throughout", name_of(w.best[0]))
                                  : fmt::format("{}", fmt::join(where, "; ")),
          .facts = {{"problem", problem_of(w.best[0].problem)}},
          .sections = {crossovers(ask::crossing_of(w), "The best candidate of every schedule.")},
          .result = to_json(w)};
}

}  // namespace attnsim::report
