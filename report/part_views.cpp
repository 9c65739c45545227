#include "report/part_views.hpp"

#include <fmt/format.h>

#include "report/comparison.hpp"
#include "report/csv.hpp"

namespace attnsim::report {
namespace {

using nlohmann::ordered_json;

/// Empty where no two schedules of a problem differ.
std::string named_right(const ask::contests::tally& fastest) {
  if (fastest.of == 0) return "";
  return fmt::format(
      "fastest schedule named right in {} of {} problems whose fastest two differ by over 3 %",
      fastest.right, fastest.of);
}

}  // namespace

table summary_of(const std::vector<compared_point>& points) {
  table rows({"part", "points", "median error", "95 %", "in interval", "worst", "of"});
  for (const auto& s : errors_by_part(points)) {
    rows.add({s.part, fmt::format("{}", s.points), percent(s.median), percent(s.percentile_95),
              percent(s.inside), fmt::format("{:+.1f} %", 100 * s.worst.error()), s.worst.what});
  }
  return rows;
}

std::vector<section> sections_of(const std::vector<compared_point>& points) {
  std::vector<section> made{{.title = "Errors from parts to wholes",
                             .note = "A wrong total with right parts is an error of the schedule's "
                                     "model; a right total with wrong parts is luck.",
                             .rows = summary_of(points)}};
  for (const auto& s : errors_by_part(points)) {
    std::vector<comparison> figures;
    for (const auto& p : points) {
      if (p.part != s.part) continue;
      const auto colon = p.what.find(": ");
      figures.push_back({p.what.substr(0, colon), p.what.substr(colon + 2), p.measured.value(),
                         p.predicted.value(), p.low.value(), p.high.value()});
    }
    made.push_back(predicted_against("measured", "s", figures));
    made.back().title = s.part;
  }
  return made;
}

std::string to_table(const compared_points& done) {
  const auto named = named_right(done.fastest);
  return summary_of(done.points).str() + (named.empty() ? "" : named + "\n");
}

std::string to_csv(const compared_points& done) {
  auto text =
      csv_line("part", "what", "predicted_us", "low_us", "high_us", "measured_us", "error") + "\n";
  const auto us = [](seconds time) { return fmt::format("{:.4g}", time.value() * 1e6); };
  for (const auto& p : done.points) {
    text += csv_line(p.part, p.what, us(p.predicted), us(p.low), us(p.high), us(p.measured),
                     fmt::format("{:.4f}", p.error())) +
            "\n";
  }
  return text;
}

ordered_json to_json(const compared_points& done) {
  auto parts = ordered_json::array(), points = ordered_json::array();
  for (const auto& s : errors_by_part(done.points)) {
    parts.push_back({{"part", s.part},
                     {"points", s.points},
                     {"median_error", s.median},
                     {"percentile_95_error", s.percentile_95},
                     {"in_interval", s.inside}});
  }
  for (const auto& p : done.points) {
    points.push_back({{"part", p.part},
                      {"what", p.what},
                      {"predicted_s", p.predicted.value()},
                      {"interval_s", {p.low.value(), p.high.value()}},
                      {"measured_s", p.measured.value()},
                      {"error", p.error()}});
  }
  return {{"schema", "attnsim.comparison.2"},
          {"parts", parts},
          {"fastest_named_right", {{"right", done.fastest.right}, {"of", done.fastest.of}}},
          {"points", points}};
}

page page_of(const compared_points& done, const std::string& cluster) {
  return {.title = "Predicted against measured: " + cluster,
          .answer = named_right(done.fastest),
          .sections = sections_of(done.points),
          .result = to_json(done)};
}

}  // namespace attnsim::report
