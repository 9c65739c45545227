#include "report/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/chart.hpp"
#include "report/results.hpp"

namespace attnsim::report {
namespace {

/// "#2 mesh 8x4", with its place only where there are others.
std::string label(const std::vector<prediction>& ranked, std::size_t i) {
  return (ranked.size() > 1 ? fmt::format("#{} ", i + 1) : "") + name_of(ranked[i]);
}

json memory_row(const std::string& label, const memory_use& m) {
  return {{"label", label},
          {"values", {m.resident.value(), m.working.value(), m.scratch.value()}},
          {"total", m.peak.value()}};
}

const memory_use& largest(const prediction& p) {
  return std::max_element(
             p.passes.begin(), p.passes.end(),
             [](const auto& a, const auto& b) { return a.memory.peak < b.memory.peak; })
      ->memory;
}

section memory(const std::vector<std::pair<std::string, memory_use>>& list, byte_count limit) {
  section s{.title = "Memory",
            .note = fmt::format("Buffers of the rank that takes most, of the {} of a device.",
                                to_string(limit)),
            .rows = table({"", "peak", "of the device", "own shards", "working", "scratch"})};
  auto rows = json::array();
  for (const auto& [name, m] : list) {
    rows.push_back(memory_row(name, m));
    s.rows.add({name, to_string(m.peak), percent(m.peak / limit), to_string(m.resident),
                to_string(m.working), to_string(m.scratch)});
  }
  s.chart = {{"kind", "bars"},
             {"unit", "B"},
             {"series",
              {series("own shards", colour::compute),
               series("working buffers", colour::more_compute), series("scratch", colour::other)}},
             {"rows", rows},
             {"limit", {{"name", "device memory"}, {"value", limit.value()}}}};
  return s;
}

}  // namespace

section ranking(const std::vector<prediction>& ranked) {
  section s{.title = "Ranked candidates",
            .note =
                "Time of one attention layer on the slowest rank; the line spans the interval "
                "that the profile's stated uncertainties give.",
            .rows = ranking_of(ranked)};
  auto rows = json::array();
  std::vector<pass_kind> passes;
  for (const auto& p : ranked[0].passes) {
    if (std::find(passes.begin(), passes.end(), p.pass) == passes.end()) passes.push_back(p.pass);
  }
  const bool launched =
      std::any_of(ranked.begin(), ranked.end(), [](const auto& p) { return p.host > seconds(); });
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const auto& p = ranked[i];
    auto values = json::array();
    for (const auto pass : passes) {
      seconds time;
      for (const auto& one : p.passes) time += one.pass == pass ? one.compute : seconds{};
      values.push_back(time.value());
    }
    values.push_back(p.exposed_communication.value());
    if (launched) {
      const auto device = p.compute + p.exposed_communication;
      values.push_back(std::max(p.time - device, seconds()).value());
    }
    rows.push_back({{"label", label(ranked, i)},
                    {"values", values},
                    {"total", p.time.value()},
                    {"low", p.low.value()},
                    {"high", p.high.value()}});
  }
  s.chart = {{"kind", "bars"}, {"unit", "s"}, {"series", json::array()}, {"rows", rows}};
  for (const auto pass : passes) {
    s.chart["series"].push_back(
        series(fmt::format("{} computing", name_of(pass)),
               pass == pass_kind::forward ? colour::compute : colour::more_compute));
  }
  s.chart["series"].push_back(series("exposed communication", colour::waiting));
  if (launched) s.chart["series"].push_back(series("waiting for the host", colour::other));
  return s;
}

section memory(const prediction& p, byte_count limit) {
  std::vector<std::pair<std::string, memory_use>> rows;
  for (const auto& one : p.passes) rows.emplace_back(name_of(one.pass), one.memory);
  return memory(rows, limit);
}

section memory(const std::vector<prediction>& ranked, byte_count limit) {
  std::vector<std::pair<std::string, memory_use>> rows;
  for (std::size_t i = 0; i < ranked.size(); ++i)
    rows.emplace_back(label(ranked, i), largest(ranked[i]));
  return memory(rows, limit);
}

}  // namespace attnsim::report
