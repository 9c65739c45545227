#include "cli/rungs.hpp"

#include <fmt/format.h>

#include "calibrate/predicted.hpp"
#include "report/comparison.hpp"

namespace attnsim::cli {

ladder_point compared(const measurement& m, const cluster& c) {
  const auto time = predicted_time(m.what, c);
  const auto off = time * uncertainty_of(m.what, c);
  return {rung_of(m.what),
          fmt::format("{}: {}", c.name, describe(m.what)),
          time,
          time - off,
          time + off,
          seconds(m.median())};
}

report::table summary_of(const std::vector<ladder_point>& points) {
  report::table rows({"rung", "points", "median error", "95 %", "in interval", "worst", "of"});
  for (const auto& s : summarise(points)) {
    rows.add({s.rung, fmt::format("{}", s.points), percent(s.median), percent(s.percentile_95),
              percent(s.inside), fmt::format("{:+.1f} %", 100 * s.worst.error()), s.worst.what});
  }
  return rows;
}

std::vector<report::section> sections_of(const std::vector<ladder_point>& points) {
  std::vector<report::section> made{
      {.title = "Errors from parts to wholes",
       .note = "A wrong total with right parts is an error of the "
               "schedule's model; a right total with wrong parts is luck.",
       .rows = summary_of(points)}};
  for (const auto& s : summarise(points)) {
    std::vector<report::comparison> figures;
    for (const auto& p : points) {
      if (p.rung != s.rung) continue;
      const auto colon = p.what.find(": ");
      figures.push_back({p.what.substr(0, colon), p.what.substr(colon + 2), p.measured.value(),
                         p.predicted.value(), p.low.value(), p.high.value()});
    }
    made.push_back(report::predicted_against("measured", "s", figures));
    made.back().title = s.rung;
  }
  return made;
}

}  // namespace attnsim::cli
