#include "report/pages.hpp"

#include <fmt/format.h>

#include "ask/bases.hpp"
#include "formats/topology.hpp"
#include "report/candidates.hpp"
#include "report/chart.hpp"
#include "report/crossovers.hpp"
#include "report/recorded.hpp"
#include "report/results.hpp"

namespace attnsim::report {
namespace {

page head(const char* what, const cluster& c, const prediction& p) {
  return {.title = fmt::format("{}: attention on {}, {}", what, p.cluster,
                               formats::counted(static_cast<std::size_t>(p.ranks), "rank")),
          .answer = fmt::format("{}: {} a layer, of which {} waiting for data", name_of(p),
                                to_string(p.time), percent(p.exposed_communication / p.time)),
          .facts = {{"problem", problem_of(p.problem)},
                    {"strategy", strategy_of(p)},
                    {"time", fmt::format("{} [{} to {}]", to_string(p.time), to_string(p.low),
                                         to_string(p.high))},
                    {"limit", limit_of(p)},
                    {"bound by", bound_by(p.bottleneck)},
                    {"rate", fmt::format("{} a device", to_string(p.rate_per_device))},
                    {"sent", fmt::format("{} a rank at most", to_string(p.most_bytes_sent))},
                    {"memory",
                     fmt::format("{} of {}", to_string(p.peak_memory), to_string(c.device.memory))},
                    {"devices", fmt::format("{} x {}", c.devices(), c.device.name)},
                    {"figures", ask::text_of(ask::bases_of(c, p))}},
          .warnings = p.warnings};
}

void add_details(page& made, const cluster& c, const std::vector<recorded_pass>& passes) {
  made.sections.push_back(breakdown(passes));
  made.sections.push_back(critical_rank(passes));
  made.sections.push_back(link_utilisation(c, passes));
}

}  // namespace

page page_of(const cluster& c, ask::predicted_run& run) {
  const auto& p = run.prediction();
  auto made = head("Prediction", c, p);
  made.result = to_json(p);
  made.sections.push_back(ranking({p}));
  made.sections.back().title = "Time";
  add_details(made, c, run.passes());
  made.sections.push_back(memory(p, c.device.memory));
  return made;
}

page page_so_far(const cluster& c, const std::vector<prediction>& ranked) {
  auto made = head("Plan so far", c, ranked.front());
  made.sections.push_back(ranking(ranked));
  return made;
}

page page_of(const cluster& c, const plan_result& plan) {
  const auto& ranked = plan.candidates;
  auto made = head("Plan", c, ranked.front());
  made.result = to_json(plan);
  made.sections.push_back(ranking(ranked));
  add_details(made, c, ask::predicted_run(c, ranked.front()).passes());
  for (auto& s : made.sections) {
    if (&s != &made.sections.front()) s.title += fmt::format(": {}", name_of(ranked.front()));
  }
  made.sections.push_back(memory(ranked, c.device.memory));
  made.sections.push_back(crossovers(
      ask::over_sequences(c, ranked, name_of),
      "The best candidate of every schedule at other lengths of sequence, by the closed form."));
  return made;
}

}  // namespace attnsim::report
