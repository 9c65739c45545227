#include "report/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace attnsim::report {
namespace {

std::string schedule_of(const strategy& s) {
  return s.order == kv_order::transposed ? s.schedule + " (transposed)" : s.schedule;
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
    list.push_back(fmt::format("{}{} {}{}", name_of(b.what), fp32 ? " fp32" : "",
                               b.count > 1 ? fmt::format("{} x ", b.count) : "",
                               to_string(b.each)));
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

flop_count work_per_device(const prediction& p) {
  return flop_count(p.rate_per_device.value() * p.time.value());
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
  return fmt::format("{} tokens x {}, {} heads, {} K/V heads of {}, {}, {}", a.sequence, a.batch,
                     a.heads, a.kv_heads, a.head_dim, name_of(a.mask), name_of(a.dtype));
}

std::string strategy_of(const prediction& p) {
  return fmt::format("{}, {} tokens, {}", name_of(p), name_of(p.chosen.tokens), p.chosen.placement);
}

std::string bound_by(const bottleneck& b) {
  return fmt::format("{} {} ({:.0f} %)", b.kind, b.name, 100 * b.share);
}

nlohmann::ordered_json to_json(const prediction& p) {
  return {
      {"schema", "attnsim.prediction.1"},
      {"cluster", p.cluster},
      {"ranks", p.ranks},
      {"schedule", p.chosen.schedule},
      {"grid", {p.chosen.rows, p.chosen.cols}},
      {"ulysses", p.chosen.ulysses},
      {"tp", p.chosen.tensor_parallel},
      {"dp", p.data_parallel},
      {"tokens", name_of(p.chosen.tokens)},
      {"placement", p.chosen.placement},
      {"kv_order", name_of(p.chosen.order)},
      {"by", name_of(p.by)},
      {"time_s", p.time.value()},
      {"time_interval_s", {p.low.value(), p.high.value()}},
      {"compute_s", p.compute.value()},
      {"exposed_communication_s", p.exposed_communication.value()},
      {"host_s", p.host.value()},
      {"bytes_sent_per_rank", {{"max", p.most_bytes_sent.value()}, {"mean", p.mean_bytes_sent}}},
      {"peak_memory_bytes", p.peak_memory.value()},
      {"tflops_per_device", p.rate_per_device.value() / 1e12},
      {"tflop_per_device", work_per_device(p).value() / 1e12},
      {"bottleneck",
       {{"kind", p.bottleneck.kind}, {"name", p.bottleneck.name}, {"share", p.bottleneck.share}}},
      {"feasible", p.feasible},
      {"warnings", p.warnings},
  };
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
  line("rate", fmt::format("{} a device, for {} each", to_string(p.rate_per_device),
                           to_string(work_per_device(p))));
  for (const auto& warning : p.warnings) line("warning", warning);
  return text;
}

table ranking_of(const std::vector<prediction>& ranked) {
  table rows({"#", "schedule", "grid", "tokens", "placement", "time", "compute", "exposed",
              "rate/device", "sent/rank", "memory", "bound by"});
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const auto& p = ranked[i];
    rows.add(
        {fmt::format("{}", i + 1), schedule_of(p.chosen), grid_of(p),
         std::string(name_of(p.chosen.tokens)), p.chosen.placement, to_string(p.time),
         to_string(p.compute), to_string(p.exposed_communication), to_string(p.rate_per_device),
         to_string(p.most_bytes_sent), to_string(p.peak_memory),
         bound_by(p.bottleneck) + (p.by == prediction_method::analytic ? ", by closed form" : "")});
  }
  return rows;
}

std::string to_table(const std::vector<prediction>& ranked) {
  auto text = ranking_of(ranked).str();
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    for (const auto& warning : ranked[i].warnings)
      text += fmt::format("warning: #{}: {}\n", i + 1, warning);
  }
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::vector<std::pair<std::string, std::string>> csv_fields(const prediction& p) {
  std::vector<std::pair<std::string, std::string>> fields;
  const auto flat = to_json(p).flatten();
  for (const auto& [key, value] : flat.items()) {
    if (key.starts_with("/warnings")) continue;
    auto name = key.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    fields.emplace_back(name,
                        csv_field(value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return fields;
}

std::string to_csv(const std::vector<prediction>& list) {
  std::vector<std::string> names;
  std::string rows;
  for (const auto& p : list) {
    names.clear();
    std::vector<std::string> values;
    for (const auto& [name, value] : csv_fields(p)) {
      names.push_back(name);
      values.push_back(value);
    }
    rows += fmt::format("{}\n", fmt::join(values, ","));
  }
  return fmt::format("{}\n{}", fmt::join(names, ","), rows);
}

}  // namespace attnsim::report
