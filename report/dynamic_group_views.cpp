#include "report/dynamic_group_views.hpp"

#include <fmt/format.h>

#include <map>

#include "report/csv.hpp"
#include "report/table.hpp"

namespace attnsim::report {
namespace {

using ask::batch_plan;

std::map<int, int> groups_by_ranks(const batch_plan& plan) {
  std::map<int, int> count;
  for (const auto& batch : plan.micro_batches) {
    for (const auto& group : batch) ++count[group.ranks];
  }
  return count;
}

std::string sizes_of(const batch_plan& plan) {
  std::string text;
  for (const auto& [ranks, count] : groups_by_ranks(plan))
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, ranks);
  return text;
}

nlohmann::ordered_json json_of(const batch_plan& plan, int ranks) {
  auto groups = nlohmann::ordered_json::array();
  for (const auto& [size, count] : groups_by_ranks(plan))
    groups.push_back({{"ranks", size}, {"groups", count}});
  return {{"time_s", plan.time().value()},
          {"micro_batches", plan.micro_batches.size()},
          {"busy", plan.busy(ranks)},
          {"groups", std::move(groups)}};
}

}  // namespace

std::string to_table(const ask::grouped_batch& batch) {
  table rows({"context parallel", "micro-batches", "groups", "ranks busy", "time"});
  const auto add = [&](const std::string& name, const batch_plan& plan) {
    rows.add({name, std::to_string(plan.micro_batches.size()), sizes_of(plan),
              fmt::format("{:.0f} %", 100 * plan.busy(batch.ranks)), to_string(plan.time())});
  };
  add(std::to_string(batch.fixed_ranks), batch.fixed);
  add("dynamic", batch.dynamic);
  return fmt::format(
      "{} documents of {} tokens in all, at most {} a rank, on {} ranks\n{}attention alone: {:.2f} "
      "times as fast with dynamic groups\n",
      batch.documents, batch.tokens, batch.rank_tokens, batch.ranks, rows.str(),
      batch.fixed.time() / batch.dynamic.time());
}

nlohmann::ordered_json to_json(const ask::grouped_batch& batch) {
  return {{"schema", "attnsim.batch.1"},
          {"ranks", batch.ranks},
          {"rank_tokens", batch.rank_tokens},
          {"documents", batch.documents},
          {"tokens", batch.tokens},
          {"fixed", json_of(batch.fixed, batch.ranks)},
          {"dynamic", json_of(batch.dynamic, batch.ranks)}};
}

std::string to_csv(const ask::grouped_batch& batch) {
  auto text = csv_line("context_parallel", "micro_batches", "busy", "time_s") + "\n";
  const auto add = [&](const std::string& name, const batch_plan& plan) {
    text += csv_line(name, plan.micro_batches.size(), plan.busy(batch.ranks), plan.time().value()) +
            "\n";
  };
  add(std::to_string(batch.fixed_ranks), batch.fixed);
  add("dynamic", batch.dynamic);
  return text;
}

}  // namespace attnsim::report
