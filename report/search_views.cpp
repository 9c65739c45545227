#include "report/search_views.hpp"

#include <fmt/format.h>

#include "ask/predicted_run.hpp"
#include "report/candidates.hpp"
#include "report/pages.hpp"
#include "report/results.hpp"

namespace attnsim::report {
namespace {

bool is_published(const search_result& r) {
  return r.found.time >= r.published.front().time;
}

/// The best published one behind what was found.
std::vector<prediction> ranked(const search_result& r) {
  std::vector<prediction> both{r.published.front()};
  if (!is_published(r)) both.insert(both.begin(), r.found);
  return both;
}

}  // namespace

std::string why_it_wins(const search_result& r) {
  const auto& best = r.published.front();
  if (is_published(r)) return "no schedule was found that beats the best published one";
  return fmt::format(
      "{} faster than {}: compute {} instead of {}, exposed communication {} instead of {}",
      percent(best.time / r.found.time - 1), name_of(best), to_string(r.found.compute),
      to_string(best.compute), to_string(r.found.exposed_communication),
      to_string(best.exposed_communication));
}

nlohmann::ordered_json to_json(const search_result& r) {
  return {{"schema", "attnsim.search.1"},
          {"published", to_json(r.published.front())},
          {"found", to_json(r.found)},
          {"gain", r.published.front().time / r.found.time - 1},
          {"limit_s", r.found.limit.time.value()},
          {"seed", r.seed},
          {"evaluated", r.evaluated}};
}

std::string to_table(const search_result& r) {
  return fmt::format("{}\n{}\n{}\n", to_table(ranked(r)), to_table(r.found), why_it_wins(r));
}

std::string to_csv(const search_result& r) {
  return to_csv(ranked(r));
}

page page_of(const cluster& c, const search_result& r) {
  ask::predicted_run found(c, r.found);
  auto made = page_of(c, found);
  made.title = "Search: " + made.title.substr(made.title.find(": ") + 2);
  made.answer = fmt::format("{}: {}", made.answer, why_it_wins(r));
  made.result = to_json(r);
  made.sections.front() = ranking(ranked(r));
  return made;
}

}  // namespace attnsim::report
