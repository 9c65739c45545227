// Times of attention on machines that are known: nothing is fitted, everything comes from the shipped profiles. A table is
// reproduce/published/NAME.csv with a row a run: cluster, settings, kernel, strategy, problem, pass and time; `framework` names
// the profile of what ran it, else PyTorch's host launches, and `merges` and `gradients` say how.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "ask/predict.hpp"
#include "model/median.hpp"
#include "model/schedule/framework_profile.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"
#include "sim/parallel.hpp"

namespace attnsim::reproduce {
namespace {

constexpr double told_apart = 0.05;  ///< by which two published times must differ to have an order

framework_profile framework_of(const published_row& row) {
  const auto name = row.text_or("framework", "");
  if (!name.empty()) return read_framework_file(name);
  return {.host = "pytorch",
          .merges = parse_merges(row.text_or("merges", "fused")),
          .gradients = parse_precision(row.text("gradients"))};
}

strategy strategy_of(const published_row& row, const framework_profile& run_by) {
  return {.schedule = row.text("schedule"),
          .rows = static_cast<int>(row.integer("rows")),
          .cols = static_cast<int>(row.integer("cols")),
          .ulysses = static_cast<int>(row.integer("ulysses")),
          .tokens = parse_token_layout(row.text("tokens")),
          .kernel = row.text("kernel"),
          .merges = run_by.merges,
          .partials = run_by.partials,
          .gradients = run_by.gradients,
          .launch = run_by.launch,
          .copies = run_by.copies,
          .waits = run_by.waits};
}

attention problem_of(const published_row& row) {
  return {.batch = row.integer("batch"),
          .heads = row.integer("heads"),
          .kv_heads = row.integer("kv_heads"),
          .head_dim = row.integer("head_dim"),
          .sequence = row.integer("sequence"),
          .mask = parse_mask(row.text("mask"))};
}

/// "8192+8192|16384": the lists of document lengths whose mean a row is; one empty list where it has none.
std::vector<std::vector<std::int64_t>> document_lists_of(const published_row& row) {
  std::vector<std::vector<std::int64_t>> lists;
  std::istringstream all(row.text_or("documents", ""));
  for (std::string list; std::getline(all, list, '|');) {
    std::istringstream lengths(list);
    auto& documents = lists.emplace_back();
    for (std::string tokens; std::getline(lengths, tokens, '+');)
      documents.push_back(std::stoll(tokens));
  }
  if (lists.empty()) lists.emplace_back();
  return lists;
}

double predicted_ms(const published_row& row, void (*change)(published_run&) = nullptr) {
  const auto run_by = framework_of(row);
  published_run run{cluster_of(row, run_by.host), problem_of(row), strategy_of(row, run_by)};
  if (change) change(run);
  const auto& s = run.chosen;
  const int ranks = s.rows * s.cols * s.ulysses;
  const auto lists = document_lists_of(row);
  double sum = 0;
  for (const auto& documents : lists) {
    run.problem.documents = documents;
    sum += predict(run.on, run.problem, s, ranks, parse_pass(row.text("pass"))).time.value() * 1e3;
  }
  return sum / static_cast<double>(lists.size());
}

/// Kendall's tau: of all pairs that the published times tell apart, those in the predicted order less the others, over all.
/// NaN without pairs.
double kendall_tau(const std::vector<point>& points) {
  int agree = 0, pairs = 0;
  for (const auto& a : points) {
    for (const auto& b : points) {
      if (a.published < b.published * (1 + told_apart)) continue;  // a is slower
      ++pairs;
      if (a.predicted != b.predicted) agree += a.predicted > b.predicted ? 1 : -1;
    }
  }
  return static_cast<double>(agree) / pairs;
}

/// Of the series in which there is an order.
std::string mean_tau(const std::vector<point>& points) {
  std::map<std::string, std::vector<point>> series;
  for (const auto& p : points) series[p.series].push_back(p);
  double sum = 0, least = 1;
  int count = 0;
  for (const auto& [name, members] : series) {
    const double tau = kendall_tau(members);
    if (std::isnan(tau)) continue;
    sum += tau;
    least = std::min(least, tau);
    ++count;
  }
  return fmt::format(
      "order within a series: Kendall's tau {:.2f} on average of {} series, {:.2f} at least; pairs "
      "published within {:.0f} % of each other left out",
      sum / count, count, least, 100 * told_apart);
}

/// What was run: all that a prediction rests on. On a grid of one place nothing depends on the layout.
std::string question_of(const published_row& row) {
  const bool one_place = row.integer("rows") * row.integer("cols") == 1;
  std::string all;
  for (const auto* column : {"cluster", "settings", "kernel", "schedule", "rows", "cols", "ulysses",
                             "batch", "heads", "kv_heads", "head_dim", "sequence", "mask", "pass"})
    all += row.text(column) + " ";
  for (const auto* column : {"framework", "merges", "gradients", "documents"})
    all += row.text_or(column, "") + " ";
  return one_place ? all : all + row.text("tokens");
}

std::vector<point> repeats(const std::vector<published_row>& rows) {
  std::map<std::string, std::vector<double>> times;
  for (const auto& row : rows) times[question_of(row)].push_back(row.number("time_ms"));
  std::vector<point> points;
  for (const auto& row : rows) {
    const auto& all = times[question_of(row)];
    if (all.size() > 1)
      points.push_back(
          {row.text("series"), row.text("figure"), row.number("time_ms"), median(all)});
  }
  return points;
}

}  // namespace

result measured_times(const std::string& table, std::vector<std::string> assumptions,
                      const std::vector<other_assumption>& others, std::vector<std::string> notes) {
  const auto rows = published(table);
  result r{.unit = "ms"};
  for (const auto& row : rows)
    r.points.push_back({.series = row.text("series"),
                        .figure = row.text("figure"),
                        .published = row.number("time_ms"),
                        .fitted = row.text_or("fitted", "") == "yes"});
  std::vector<std::size_t> all(rows.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  parallel_for_each(all, [&](std::size_t i) { r.points[i].predicted = predicted_ms(rows[i]); });
  for (const auto& other : others) {
    for (const auto& row : rows) {
      const auto& series = row.text("series");
      if (!series.starts_with(other.series)) continue;
      r.what_ifs.push_back({other.text, fmt::format("{}: {}", series, row.text("figure")),
                            row.number("time_ms"), predicted_ms(row, other.change)});
    }
  }
  const bool fitted =
      std::any_of(r.points.begin(), r.points.end(), [](const point& p) { return p.fitted; });
  r.assumptions = {fitted
                       ? "device profiles and clusters as shipped or as the table says"
                       : "device profiles and clusters as shipped; nothing is fitted to this table",
                   pytorch_host};
  std::move(assumptions.begin(), assumptions.end(), std::back_inserter(r.assumptions));
  r.repeats = repeats(rows);
  r.notes = {mean_tau(r.points)};
  std::move(notes.begin(), notes.end(), std::back_inserter(r.notes));
  return r;
}

}  // namespace attnsim::reproduce
