#include "report/layer_plan_views.hpp"

#include <fmt/format.h>

#include "report/csv.hpp"
#include "report/results.hpp"

namespace attnsim::report {

std::string to_table(const ask::layer_plans& plans) {
  table rows({"layers", "of them", "schedule", "grid", "tokens", "placement", "time a layer"});
  std::int64_t layers = 0;
  for (const auto& [kind, count, best, unbound] : plans.kinds) {
    const auto& s = best.chosen;
    rows.add({std::string(name_of(kind)), std::to_string(count), s.schedule, grid_of(best),
              std::string(name_of(s.tokens)), s.placement, to_string(best.time)});
    layers += count;
  }
  auto text = fmt::format("{}{} layers: {}\n", rows.str(), layers, to_string(plans.time()));
  if (plans.unbound_time() < plans.time()) {
    text +=
        fmt::format("{} with tokens as each kind likes them (", to_string(plans.unbound_time()));
    for (const auto& one : plans.kinds)
      text += fmt::format("{}{}: {}", &one == &plans.kinds.front() ? "" : ", ", name_of(one.kind),
                          strategy_of(one.unbound));
    text += "), without what moves them between layers\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const ask::layer_plans& plans) {
  auto kinds = nlohmann::ordered_json::array();
  for (const auto& one : plans.kinds) {
    kinds.push_back({{"kind", name_of(one.kind)},
                     {"layers", one.layers},
                     {"best", to_json(one.best)},
                     {"unbound", to_json(one.unbound)}});
  }
  return {{"schema", "attnsim.layers.1"},
          {"time_s", plans.time().value()},
          {"unbound_time_s", plans.unbound_time().value()},
          {"kinds", std::move(kinds)}};
}

std::string to_csv(const ask::layer_plans& plans) {
  auto text = csv_line("kind", "layers", "schedule", "grid", "tokens", "time_s") + "\n";
  for (const auto& one : plans.kinds) {
    const auto& s = one.best.chosen;
    text += csv_line(name_of(one.kind), one.layers, s.schedule, grid_of(one.best),
                     name_of(s.tokens), one.best.time.value()) +
            "\n";
  }
  return text;
}

}  // namespace attnsim::report
