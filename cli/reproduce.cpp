#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/write_file.hpp"
#include "report/comparison.hpp"
#include "reproduce/study.hpp"

namespace attnsim::cli {
namespace {

using reproduce::result;
using reproduce::study;

struct reproduce_flags {
  std::string name, report;
  output_flags output;
};

std::string number(double value) {
  return fmt::format("{:.4g}", value);
}

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string list(std::string_view title, const std::vector<std::string>& lines) {
  std::string text = lines.empty() ? "" : fmt::format("{}:\n", title);
  for (const auto& line : lines) text += fmt::format("  - {}\n", line);
  return text;
}

std::string sentence(std::string_view title, const std::vector<std::string>& lines) {
  return lines.empty() ? "" : fmt::format("{}: {}. ", title, fmt::join(lines, "; "));
}

std::string points_table(const result& r) {
  text_table table({"series", "figure", "published", "predicted", "error"});
  for (const auto& p : r.points) {
    table.add({p.series, p.figure, number(p.published), number(p.predicted),
               percent(p.error()) + (p.fitted ? " (fitted)" : "")});
  }
  return table.str();
}

std::string errors_table(const result& r) {
  text_table table({"series", "figures", "mean error", "largest", "beyond 30 %"});
  auto errors = errors_of(r.points);
  if (errors.size() > 1) errors.push_back(error_of_predicted(r.points));
  for (const auto& e : errors) {
    table.add({e.series + (e.fitted ? " (fitted)" : ""), fmt::format("{}", e.points),
               fmt::format("{:.1f} %", 100 * e.mean), fmt::format("{:.1f} %", 100 * e.max),
               fmt::format("{}", e.large)});
  }
  return table.str();
}

std::string what_ifs_table(const result& r) {
  if (r.what_ifs.empty()) return "";
  text_table table({"other assumptions", "figure", "published", "predicted"});
  for (const auto& w : r.what_ifs) {
    table.add(
        {w.assumption, w.figure, w.published == 0 ? "" : number(w.published), number(w.predicted)});
  }
  return "\n" + table.str();
}

/// What no prediction can be nearer than.
std::string repeats_table(const result& r) {
  if (r.repeats.empty()) return "";
  text_table table({"published more than once", "figures", "mean from their median", "largest"});
  for (const auto& e : errors_of(r.repeats))
    table.add({e.series, fmt::format("{}", e.points), fmt::format("{:.1f} %", 100 * e.mean),
               fmt::format("{:.1f} %", 100 * e.max)});
  return "\n" + table.str();
}

std::string to_table(const study& s, const result& r) {
  return fmt::format("{}: {}\nsource: {}\nunit: {}\n", s.name, s.summary, s.source, r.unit) +
         list("assumed", r.assumptions) + list("fitted", r.fitted) + "\n" + points_table(r) + "\n" +
         errors_table(r) + repeats_table(r) + what_ifs_table(r) + list("notes", r.notes);
}

nlohmann::ordered_json errors_to_json(const std::vector<reproduce::point>& points) {
  auto errors = nlohmann::ordered_json::array();
  for (const auto& e : errors_of(points)) {
    errors.push_back({{"series", e.series},
                      {"figures", e.points},
                      {"mean", e.mean},
                      {"max", e.max},
                      {"beyond_30_percent", e.large}});
  }
  return errors;
}

nlohmann::ordered_json to_json(const study& s, const result& r) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array(), what_ifs = points;
  for (const auto& p : r.points) {
    points.push_back({{"series", p.series},
                      {"figure", p.figure},
                      {"published", p.published},
                      {"predicted", p.predicted},
                      {"error", p.error()},
                      {"fitted", p.fitted}});
  }
  for (const auto& w : r.what_ifs) {
    what_ifs.push_back(
        {{"assumption", w.assumption}, {"figure", w.figure}, {"predicted", w.predicted}});
    if (w.published != 0) what_ifs.back()["published"] = w.published;
  }
  return {{"schema", "attnsim.reproduction.1"},
          {"study", s.name},
          {"source", s.source},
          {"unit", r.unit},
          {"assumed", r.assumptions},
          {"fitted", r.fitted},
          {"points", points},
          {"errors", errors_to_json(r.points)},
          {"repeats", errors_to_json(r.repeats)},
          {"what_if", what_ifs},
          {"notes", r.notes}};
}

std::string to_csv(const study& s, const result& r) {
  std::string text;
  for (const auto& p : r.points) {
    text +=
        csv_line(s.name, p.series, p.figure, p.published, p.predicted, p.error(), p.fitted) + "\n";
  }
  return text;
}

report::section section_of(const study& s, const result& r) {
  std::vector<report::comparison> figures;
  for (const auto& p : r.points) figures.push_back({p.series, p.figure, p.published, p.predicted});
  auto made = report::predicted_against("published", r.unit, figures);
  made.title = fmt::format("{}: {}", s.name, s.summary);
  made.note = fmt::format("Source: {}. Figures: {}. {}{}", s.source, r.unit,
                          sentence("Assumed", r.assumptions), sentence("Fitted", r.fitted));
  return made;
}

/// Mean errors of the studies, and every figure of each.
report::page page_of(const std::vector<std::pair<const study*, result>>& done,
                     nlohmann::ordered_json json) {
  text_table errors({"study", "figures", "mean error", "largest", "beyond 30 %"});
  report::page page{.title = "Published results, recomputed", .result = std::move(json)};
  std::size_t figures = 0;
  for (const auto& [s, r] : done) {
    const auto e = error_of_predicted(r.points);
    figures += r.points.size();
    errors.add({std::string(s->name), fmt::format("{}", e.points),
                fmt::format("{:.1f} %", 100 * e.mean), fmt::format("{:.1f} %", 100 * e.max),
                fmt::format("{}", e.large)});
  }
  page.answer = fmt::format("{} figures of {} studies, each predicted", figures, done.size());
  page.sections.push_back({.title = "Errors of what nothing was fitted to", .rows = errors});
  for (const auto& [s, r] : done) page.sections.push_back(section_of(*s, r));
  return page;
}

void run(const reproduce_flags& flags) {
  const auto format = parse_format(flags.output.format);
  check_files({{"--report", flags.report}});
  std::vector<const study*> chosen;
  if (flags.name.empty()) {
    for (const auto& s : reproduce::studies()) chosen.push_back(&s);
  } else {
    chosen.push_back(&reproduce::find_study(flags.name));
  }
  std::vector<std::pair<const study*, result>> done;
  progress bar("studies", flags.output.quiet);
  for (const auto* s : chosen) {
    bar.show(done.size(), chosen.size());
    done.emplace_back(s, s->run());
  }
  bar.end();
  auto json = nlohmann::ordered_json::array();
  std::string table, csv = "study,series,figure,published,predicted,error,fitted\n";
  for (const auto& [s, r] : done) {
    json.push_back(to_json(*s, r));
    csv += to_csv(*s, r);
    table += (table.empty() ? "" : "\n\n") + to_table(*s, r);
  }
  if (!flags.report.empty()) write_file("--report", flags.report, page_of(done, json).html());
  switch (format) {
    case output_format::table:
      return print_table(table);
    case output_format::json:
      return print_json(json);
    case output_format::csv:
      return fmt::print("{}", csv);
  }
}

}  // namespace

void add_reproduce(CLI::App& app) {
  auto flags = std::make_shared<reproduce_flags>();
  std::string names;
  for (const auto& s : reproduce::studies())
    names += fmt::format("\n  {:<22}{}", s.name, s.summary);
  auto* command = app.add_subcommand("reproduce", "published results: published, predicted, error");
  command->add_option("NAME", flags->name, "one of the studies below (default: all)");
  flags->output.add_to(*command);
  add_report(*command, flags->report);
  command->footer("Studies:" + names);
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
