#include "report/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/csv.hpp"
#include "report/figure_views.hpp"

namespace attnsim::report {
namespace {

std::string schedule_of(const strategy& s) {
  const auto* order = s.order == kv_order::transposed ? " (transposed)" : "";
  return s.schedule + order + (s.keys_sent == key_form::latent ? " of latents" : "");
}

/// "[########..]": the share that computes, and what waits.
std::string bar(double share) {
  constexpr int width = 40;
  const int filled = static_cast<int>(std::lround(width * share));
  return fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", width - filled);
}

/// "15 calls at 57.3 % of their highest rate: small blocks, and 45 us of launches".
std::string kernels(const kernel_use& use) {
  constexpr double small_blocks = 2.0 / 3;
  return fmt::format("{} calls at {} of their highest rate{}, {} of launches", use.calls,
                     percent(use.share), use.share < small_blocks ? ": small blocks" : "",
                     to_string(use.launches));
}

/// "k 2 x 16.00 MiB, o fp32 128.0 MiB".
std::string working_buffers(const memory_use& memory) {
  std::vector<std::string> list;
  for (const auto& b : memory.at_peak) {
    const bool fp32 = b.format == precision::fp32 || is_statistic(b.what);
    const auto* format = fp32 ? " fp32" : b.format == precision::wire ? " wire" : "";
    list.push_back(fmt::format("{}{} {}{}", name_of(b.what), format,
                               b.count > 1 ? fmt::format("{} x ", b.count) : "",
                               to_string(b.each)));
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

/// A figure for people, by its unit, or as its own words have it.
struct ranking_column {
  std::string_view heading, figure;
  std::string (*words)(const prediction&) = nullptr;
};

const ranking_column ranking_columns[] = {
    {"schedule", "schedule", [](const prediction& p) { return schedule_of(p.chosen); }},
    {"grid", "grid", [](const prediction& p) { return grid_of(p); }},
    {"tokens", "tokens"},
    {"placement", "placement"},
    {"time", "time_s"},
    {"compute", "compute_s"},
    {"exposed", "exposed_communication_s"},
    {"rate/device", "tflops_per_device"},
    {"sent/rank", "bytes_sent_per_rank"},
    {"memory", "peak_memory_bytes"},
    {"x limit", "times_limit",
     [](const prediction& p) {
       return p.limit.time > seconds() ? fmt::format("{:.2f}", p.time / p.limit.time) : "";
     }},
    {"bound by", "bottleneck",
     [](const prediction& p) {
       return bound_by(p.bottleneck) +
              (p.by == prediction_method::analytic ? ", by closed form" : "");
     }},
};

std::string cell(const ranking_column& c, const prediction& p) {
  if (c.words != nullptr) return c.words(p);
  const auto figures = ask::figures<prediction>();
  const auto f = std::find_if(figures.begin(), figures.end(),
                              [&](const auto& one) { return one.name == c.figure; });
  return text_of(f->get(p), f->unit);
}

template <typename T>
T figure_of(const prediction& p, std::string_view name) {
  const auto figures = ask::figures<prediction>();
  const auto f = std::find_if(figures.begin(), figures.end(),
                              [&](const auto& one) { return one.name == name; });
  return std::get<T>(f->get(p));
}

std::string_view passes_in_words(pass_kind pass) {
  if (pass == pass_kind::both) return "forward and backward";
  return pass == pass_kind::recompute ? "forward twice and backward" : name_of(pass);
}

}  // namespace

std::string grid_of(const strategy& s) {
  return fmt::format("{}x{}{}{}", s.rows, s.cols,
                     s.ulysses > 1 ? fmt::format(" U{}", s.ulysses) : "",
                     s.tensor_parallel > 1 ? fmt::format(" T{}", s.tensor_parallel) : "");
}

std::string grid_of(const prediction& p) {
  return grid_of(p.chosen) + (p.data_parallel > 1 ? fmt::format(" D{}", p.data_parallel) : "");
}

std::string name_of(const prediction& p) {
  return fmt::format("{} {}", schedule_of(p.chosen), grid_of(p));
}

std::string problem_of(const attention& a) {
  const auto kept = a.kept_first > 0 ? fmt::format(" and the first {}", a.kept_first) : "";
  const auto window = a.window > 0 ? fmt::format(", window of {}{}", a.window, kept) : "";
  const auto sinks = fmt::format("{}{}", a.sinks ? ", sinks" : "", a.latent ? ", latent" : "");
  const auto documents =
      a.documents.empty() ? "" : fmt::format(", {} documents", a.documents.size());
  const auto shortest =
      a.prefixes.empty() ? a.prefix : *std::min_element(a.prefixes.begin(), a.prefixes.end());
  const auto keys = shortest < a.prefix ? fmt::format(" after {} to {} cached", shortest, a.prefix)
                    : a.prefix > 0      ? fmt::format(" after {} cached", a.prefix)
                    : a.kv_sequence > 0 ? fmt::format(" to {} others", a.kv_sequence)
                                        : "";
  const auto dims = a.v_head_dim > 0 ? fmt::format("{}/{}", a.head_dim, a.v_head_dim)
                                     : fmt::format("{}", a.head_dim);
  const auto wire = a.wire_dtype ? fmt::format(" ({} between ranks)", name_of(*a.wire_dtype)) : "";
  return fmt::format("{} tokens{} x {}{}, {} heads, {} K/V heads of {}, {}{}{}, {}{}", a.sequence,
                     keys, a.batch, documents, a.heads, a.kv_heads, dims, name_of(a.mask), window,
                     sinks, name_of(a.dtype), wire);
}

std::string strategy_of(const prediction& p) {
  return fmt::format("{}, {} tokens, {}", name_of(p), name_of(p.chosen.tokens), p.chosen.placement);
}

std::string bound_by(const bottleneck& b) {
  return fmt::format("{} {} ({:.0f} %)", b.kind, b.name, 100 * b.share);
}

nlohmann::ordered_json problem_to_json(const attention& a, pass_kind pass) {
  auto problem = json_of_figures(a);
  problem["pass"] = name_of(pass);
  return problem;
}

nlohmann::ordered_json to_json(const prediction& p) {
  auto all = json_of_figures(p);
  all["problem"] = problem_to_json(p.problem, p.pass);
  return all;
}

std::string limit_of(const prediction& p) {
  if (p.limit.time <= seconds()) return "";
  return fmt::format("{:.2f} x {}, bound by {}", p.time / p.limit.time, to_string(p.limit.time),
                     p.limit.bound_by);
}

std::string to_table(const prediction& p) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<24}{}\n", name, value);
  };
  line("cluster", fmt::format("{}, {} ranks", p.cluster, p.ranks));
  line("problem", problem_of(p.problem));
  line("strategy", strategy_of(p));
  line("time",
       fmt::format("{}  [{} to {}]", to_string(p.time), to_string(p.low), to_string(p.high)));
  if (const auto limit = limit_of(p); !limit.empty()) line("limit", limit);
  for (const auto& one : p.passes) {
    line(fmt::format("  {}", name_of(one.pass)),
         fmt::format("{}: compute {}, exposed communication {}", to_string(one.time),
                     to_string(one.compute), to_string(one.exposed_communication)));
    line("", bar(one.compute / one.time));
    line("    bound by", bound_by(one.bottleneck));
    if (one.host > seconds()) line("    host", to_string(one.host) + " of launches");
    if (one.kernels.calls > 0) line("    kernels", kernels(one.kernels));
    line("    sends", fmt::format("{} a rank at most", to_string(one.most_bytes_sent)));
    line("    memory", fmt::format("{}: own shards {}, working {}, scratch {}",
                                   to_string(one.memory.peak), to_string(one.memory.resident),
                                   to_string(one.memory.working), to_string(one.memory.scratch)));
    if (!one.memory.at_peak.empty()) line("      working", working_buffers(one.memory));
  }
  if (p.problem.prefix > 0) {
    line("tokens", fmt::format("{:.4g} tokens/s through this layer, {} a token; cache {} a rank",
                               figure_of<double>(p, "tokens_per_second"),
                               to_string(seconds(figure_of<double>(p, "time_per_token_s"))),
                               to_string(byte_count(figure_of<std::int64_t>(p, "cache_bytes")))));
  }
  line("rate", fmt::format("{} a device, for {} each", to_string(p.rate_per_device),
                           to_string(flop_count(p.rate_per_device.value() * p.time.value()))));
  for (const auto& warning : p.warnings) line("warning", warning);
  return text;
}

table ranking_of(const std::vector<prediction>& ranked) {
  std::vector<std::string> header{"#"};
  for (const auto& c : ranking_columns) header.emplace_back(c.heading);
  table rows(header);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    std::vector<std::string> row{fmt::format("{}", i + 1)};
    for (const auto& c : ranking_columns) row.push_back(cell(c, ranked[i]));
    rows.add(row);
  }
  return rows;
}

namespace {

/// Each warning once, with the candidates that it is about: "#2, #5: ...".
std::string warnings_of(const std::vector<prediction>& ranked) {
  std::vector<std::pair<std::string, std::vector<std::string>>> said;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    for (const auto& warning : ranked[i].warnings) {
      auto same =
          std::find_if(said.begin(), said.end(), [&](const auto& s) { return s.first == warning; });
      if (same == said.end()) same = said.insert(said.end(), {warning, {}});
      same->second.push_back(fmt::format("#{}", i + 1));
    }
  }
  std::string text;
  for (const auto& [warning, places] : said) {
    const bool of_all = ranked.size() > 1 && places.size() == ranked.size();
    text += fmt::format("warning: {}{}\n",
                        of_all ? "" : fmt::format("{}: ", fmt::join(places, ", ")), warning);
  }
  return text;
}

}  // namespace

std::string to_table(const std::vector<prediction>& ranked) {
  return ranking_of(ranked).str() + warnings_of(ranked);
}

std::string to_csv(const std::vector<prediction>& list) {
  std::vector<std::string> lines;
  for (const auto& p : list) {
    std::vector<std::string> names, fields;
    for (const auto& [name, field] : columns_of_figures(p)) {
      names.push_back(name);
      fields.push_back(field);
    }
    if (lines.empty()) lines.push_back(csv_line(names));
    lines.push_back(csv_line(fields));
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string to_csv(const prediction& p) {
  return to_csv(std::vector{p});
}

nlohmann::ordered_json to_json(const plan_result& plan) {
  auto candidates = nlohmann::ordered_json::array();
  for (const auto& p : plan.candidates) candidates.push_back(to_json(p));
  return {{"schema", "attnsim.plan.1"},
          {"problem", problem_to_json(plan.problem, plan.pass)},
          {"candidates", std::move(candidates)}};
}

std::string to_table(const plan_result& plan) {
  const auto& best = plan.candidates.front();
  return fmt::format("{}, {}, on {} ranks of {}\n{}", problem_of(plan.problem),
                     passes_in_words(plan.pass), best.ranks, best.cluster,
                     to_table(plan.candidates));
}

std::string to_csv(const plan_result& plan) {
  return to_csv(plan.candidates);
}

}  // namespace attnsim::report
