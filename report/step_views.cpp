#include "report/step_views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/chart.hpp"
#include "report/csv.hpp"
#include "report/figure_views.hpp"
#include "report/table.hpp"

namespace attnsim::report {
namespace {

std::string share_bar(double share) {
  constexpr int width = 30;
  const int filled = std::clamp(static_cast<int>(std::lround(width * share)), 0, width);
  return fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", width - filled);
}

std::string bytes_text(double bytes) {
  return to_string(byte_count(static_cast<std::int64_t>(bytes)));
}

std::string words_of(ask::step_part part) {
  switch (part) {
    case ask::step_part::products:
      return "matrix products";
    case ask::step_part::attention:
      return "attention";
    case ask::step_part::elementwise:
      return "elementwise";
    case ask::step_part::tensor:
      return "tensor exchange";
    case ask::step_part::expert:
      return "expert exchange";
    case ask::step_part::data:
      return "data exchange";
    case ask::step_part::bubble:
      return "pipeline bubble";
    case ask::step_part::optimizer:
      return "optimizer";
  }
  return "";
}

std::string time_rows(const ask::step_answer& a) {
  std::string text;
  for (int i = 0; i < ask::step_parts; ++i) {
    const auto part = static_cast<ask::step_part>(i);
    if (a.part(part) <= 0) continue;
    const double share = a.part(part) / a.time.value();
    text += fmt::format("  {:<16} {:>10} {:>7}  {}\n", words_of(part),
                        to_string(seconds(a.part(part))), percent(share), share_bar(share));
  }
  return text;
}

struct kind_of_memory {
  const char* name;
  double bytes;
};

/// Those that there are.
std::vector<kind_of_memory> kinds_of(const step_memory& m) {
  std::vector<kind_of_memory> kinds{{"parameters", m.parameters}, {"gradients", m.gradients},
                                    {"optimizer", m.optimizer},   {"activations", m.activations},
                                    {"buffers", m.buffers},       {"workspace", m.workspace}};
  std::erase_if(kinds, [](const auto& kind) { return kind.bytes <= 0; });
  return kinds;
}

std::string memory_rows(const ask::step_answer& a) {
  std::string text;
  for (const auto& [kind, bytes] : kinds_of(a.memory)) {
    const double share = bytes / a.memory.total();
    text += fmt::format("  {:<16} {:>10} {:>7}  {}\n", kind, bytes_text(bytes), percent(share),
                        share_bar(share));
  }
  return text;
}

section bars_of(const char* title, const std::string& note, const char* unit, const char* name) {
  return {.title = title,
          .note = note,
          .chart = {{"kind", "bars"},
                    {"unit", unit},
                    {"series", {series(name, colour::compute)}},
                    {"rows", json::array()}},
          .drawing = {},
          .rows = table({"", name, "share"})};
}

void add_bar(section& s, const std::string& label, double value, const std::string& text,
             double share) {
  s.chart["rows"].push_back({{"label", label}, {"values", {value}}, {"total", value}});
  s.rows.add({label, text, percent(share)});
}

section time_of(const ask::step_answer& a) {
  auto s = bars_of("Where the time goes",
                   "Of the pipeline rank that is busy longest; the parts add up to the step.", "s",
                   "time");
  for (int i = 0; i < ask::step_parts; ++i) {
    const auto part = static_cast<ask::step_part>(i);
    const double time = a.part(part);
    if (time > 0) add_bar(s, words_of(part), time, to_string(seconds(time)), time / a.time.value());
  }
  return s;
}

section memory_of(const cluster& c, const ask::step_answer& a) {
  auto s = bars_of("Memory",
                   fmt::format("{} on pipeline rank {}, which holds most.",
                               bytes_text(a.memory.total()), a.memory_rank),
                   "B", "memory");
  for (const auto& [kind, bytes] : kinds_of(a.memory))
    add_bar(s, kind, bytes, bytes_text(bytes), bytes / a.memory.total());
  s.chart["limit"] = {{"name", "device memory"}, {"value", c.device.memory.value()}};
  return s;
}

table ranking_of(const ask::step_plan& plan) {
  table ranking({"degrees", "micro-batches", "recompute", "shard", "attention", "step", "tokens/s",
                 "model rate", "memory", "bound by"});
  for (const auto& a : plan.candidates) {
    ranking.add({degrees_of(a), fmt::format("{} of {}", a.micro_batches, a.micro_batch),
                 std::string(name_of(a.recompute)), std::string(name_of(a.shard)),
                 fmt::format("{} {}x{}", a.attention.chosen.schedule, a.attention.chosen.rows,
                             a.attention.chosen.cols),
                 to_string(a.time), fmt::format("{:.4g}", a.tokens_a_second),
                 to_string(a.model_rate), bytes_text(a.memory.total()),
                 fmt::format("{} ({})", a.bottleneck.kind, percent(a.bottleneck.share))});
  }
  return ranking;
}

section candidates_of(const ask::step_plan& plan) {
  section s{.title = "Ranked candidates",
            .note =
                "Where each step's time goes, on the pipeline rank that is busy longest; the line "
                "spans the interval of its time.",
            .chart = {{"kind", "bars"},
                      {"unit", "s"},
                      {"series",
                       {series("matrix products", colour::compute),
                        series("attention", colour::more_compute),
                        series("elementwise, optimizer", colour::other),
                        series("exposed communication", colour::waiting),
                        series("pipeline bubble", colour::communication)}},
                      {"rows", json::array()}},
            .drawing = {},
            .rows = ranking_of(plan)};
  using ask::step_part;
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const auto& a = plan.candidates[i];
    s.chart["rows"].push_back(
        {{"label", fmt::format("#{} {}", i + 1, degrees_of(a))},
         {"values",
          {a.part(step_part::products), a.part(step_part::attention),
           a.part(step_part::elementwise) + a.part(step_part::optimizer),
           a.part(step_part::tensor) + a.part(step_part::expert) + a.part(step_part::data),
           a.part(step_part::bubble)}},
         {"total", a.time.value()},
         {"low", a.low.value()},
         {"high", a.high.value()}});
  }
  return s;
}

section ruled_out_of(const ask::step_plan& plan) {
  section s{.title = "Ruled out",
            .note = fmt::format("Of {} steps that were considered.", plan.considered),
            .chart = {},
            .drawing = {},
            .rows = table({"reason", "steps", "such as"})};
  for (const auto& r : plan.rejected)
    s.rows.add({r.reason, std::to_string(r.candidates), r.example});
  return s;
}

}  // namespace

std::string degrees_of(const ask::step_answer& a) {
  const std::pair<const char*, int> degrees[] = {{"tp", a.cut.tensor},   {"cp", a.cut.context},
                                                 {"pp", a.cut.pipeline}, {"vp", a.cut.chunks},
                                                 {"dp", a.cut.data},     {"ep", a.cut.expert}};
  std::string text;
  for (const auto& [name, degree] : degrees) {
    if (degree > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " ", name, degree);
  }
  return text.empty() ? "one device" : text;
}

std::string to_table(const ask::step_answer& a) {
  std::string text = fmt::format("{} on {}: {}\n", a.model, a.cluster, degrees_of(a));
  const bool trains = a.task == ask::step_task::train;
  text +=
      fmt::format("{} sequences of {} tokens, {} micro-batches of {}, {}, recompute {}, shard {}\n",
                  a.global_batch, a.sequence, a.micro_batches, a.micro_batch, name_of(a.dtype),
                  name_of(a.recompute), name_of(a.shard));
  text += fmt::format("attention: {} {}x{}, {} a layer and micro-batch\n\n",
                      a.attention.chosen.schedule, a.attention.chosen.rows, a.attention.chosen.cols,
                      to_string(a.attention.time));
  text += fmt::format("{:<18} {} ({} to {})\n", trains ? "step" : "time to first token",
                      to_string(a.time), to_string(a.low), to_string(a.high));
  text += fmt::format("{:<18} {:.4g} a device\n", "tokens/s", a.tokens_a_second);
  text += fmt::format("{:<18} {} a device, {} of the bf16 peak\n", "model rate",
                      to_string(a.model_rate), percent(a.utilisation));
  text +=
      fmt::format("{:<18} {} ({})\n", "bound by", a.bottleneck.kind, percent(a.bottleneck.share));
  text +=
      fmt::format("attention twice as fast: {:.2f}x the step; four times: {:.2f}x; free: {:.2f}x\n",
                  a.speedup_of_attention[0], a.speedup_of_attention[1], a.speedup_of_attention[2]);
  text += "\nwhere the time goes\n" + time_rows(a);
  text += fmt::format("\nmemory: {} on pipeline rank {}\n", bytes_text(a.memory.total()),
                      a.memory_rank);
  text += memory_rows(a);
  for (const auto& warning : a.warnings) text += fmt::format("warning: {}\n", warning);
  return text;
}

nlohmann::ordered_json to_json(const ask::step_answer& a) {
  return json_of_figures(a);
}

std::string to_csv(const ask::step_answer& a) {
  std::vector<std::string> names, values;
  for (auto& [name, text] : columns_of_figures(a)) {
    names.push_back(std::move(name));
    values.push_back(std::move(text));
  }
  return csv_line(names) + "\n" + csv_line(values) + "\n";
}

page page_of(const cluster& c, const ask::step_answer& a) {
  const bool trains = a.task == ask::step_task::train;
  const auto& faster = a.speedup_of_attention;
  return {
      .title = fmt::format("{} of {} on {}", trains ? "Step" : "Prefill", a.model, a.cluster),
      .answer = fmt::format("{}: {}, {:.4g} tokens/s a device", degrees_of(a), to_string(a.time),
                            a.tokens_a_second),
      .facts = {{"batch", fmt::format("{} sequences of {} tokens, {} micro-batches of {}",
                                      a.global_batch, a.sequence, a.micro_batches, a.micro_batch)},
                {"attention", fmt::format("{} {}x{}, {} a layer and micro-batch",
                                          a.attention.chosen.schedule, a.attention.chosen.rows,
                                          a.attention.chosen.cols, to_string(a.attention.time))},
                {"time", fmt::format("{} [{} to {}]", to_string(a.time), to_string(a.low),
                                     to_string(a.high))},
                {"model rate", fmt::format("{} a device, {} of the bf16 peak",
                                           to_string(a.model_rate), percent(a.utilisation))},
                {"bound by",
                 fmt::format("{} ({})", a.bottleneck.kind, percent(a.bottleneck.share))},
                {"attention faster", fmt::format("twice: {:.2f}x the step; four times: {:.2f}x; "
                                                 "free: {:.2f}x",
                                                 faster[0], faster[1], faster[2])},
                {"memory", fmt::format("{} of {}", bytes_text(a.memory.total()),
                                       to_string(c.device.memory))}},
      .warnings = a.warnings,
      .sections = {time_of(a), memory_of(c, a)},
      .result = to_json(a)};
}

page page_of(const cluster& c, const ask::step_plan& plan) {
  const auto& best = plan.candidates.front();
  auto made = page_of(c, best);
  made.title = fmt::format("Plan of steps of {} on {}", best.model, best.cluster);
  for (auto& s : made.sections) s.title += ": " + degrees_of(best);
  made.sections.insert(made.sections.begin(), candidates_of(plan));
  if (!plan.rejected.empty()) made.sections.push_back(ruled_out_of(plan));
  made.result = to_json(plan);
  return made;
}

std::string to_table(const ask::step_plan& plan) {
  std::string text = ranking_of(plan).str();
  if (!plan.rejected.empty()) text += "\nruled out\n";
  for (const auto& r : plan.rejected)
    text += fmt::format("  {} of {}: {}, such as {}\n", r.candidates, plan.considered, r.reason,
                        r.example);
  return text;
}

nlohmann::ordered_json to_json(const ask::step_plan& plan) {
  auto candidates = nlohmann::ordered_json::array(), rejected = candidates;
  for (const auto& a : plan.candidates) candidates.push_back(to_json(a));
  for (const auto& r : plan.rejected)
    rejected.push_back(
        {{"reason", r.reason}, {"candidates", r.candidates}, {"example", r.example}});
  return {{"schema", "attnsim.step_plan.1"},     {"considered", plan.considered},
          {"estimated", plan.estimated},         {"simulated", plan.simulated},
          {"candidates", std::move(candidates)}, {"rejected", std::move(rejected)}};
}

std::string to_csv(const ask::step_plan& plan) {
  std::string text;
  for (const auto& a : plan.candidates) {
    const auto lines = to_csv(a);
    text += text.empty() ? lines : lines.substr(lines.find('\n') + 1);
  }
  return text;
}

std::string to_text(const emitted_settings& found, std::string_view framework,
                    const ask::step_plan& plan) {
  std::string text;
  const auto refused = found.refusals.size();
  for (std::size_t i = 0; i < refused; ++i)
    text += fmt::format("# not #{}, {}: {} {}\n", i + 1, degrees_of(plan.candidates[i]), framework,
                        found.refusals[i]);
  const auto& best = plan.candidates[refused];
  return text + fmt::format("# {}: #{} of the plan, {}, {}\n{}", framework, refused + 1,
                            degrees_of(best), to_string(best.time), found.lines);
}

}  // namespace attnsim::report
