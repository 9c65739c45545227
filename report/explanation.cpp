#include "report/explanation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "report/results.hpp"
#include "report/table.hpp"

namespace attnsim::report {
namespace {

std::string factor(double f) {
  return f == 0 ? "no" : fmt::format("{:.3g}x", f);
}

std::string place(const std::optional<std::size_t>& index) {
  return index ? fmt::format("{}", *index + 1) : "-";
}

table shortfalls(const ask::explanation& e, const plan_result& plan) {
  table rows({"#", "bound by", "kernels at", "behind", "if network faster by", "or kernels by",
              "compute-bound from", "or from " + e.bandwidth_key});
  for (std::size_t i = 0; i < e.candidates.size(); ++i) {
    const auto& p = plan.candidates[i];
    const auto& [lacks, tokens, faster_network] = e.candidates[i];
    rows.add({fmt::format("{}", i + 1), p.bottleneck.kind, percent(p.passes.back().kernels.share),
              to_string(lacks.behind), factor(lacks.network), factor(lacks.kernels),
              tokens ? fmt::format("{} tokens", *tokens) : "-",
              faster_network ? to_string(*faster_network) : "-"});
  }
  return rows;
}

std::string advice(const ask::explanation& e, const prediction& best, const cluster& c) {
  return fmt::format(
      "launch order: transfers before the kernels that hide them; the other way round #1 takes {} "
      "({:+.1f} %)\nchannels: transfers {} hold {} of {} multiprocessors\n",
      to_string(e.late.time), 100 * (e.late.time / best.time - 1),
      e.transport == link_kind::nvlink ? "inside a node" : "between nodes",
      c.device.transport(e.transport).channels, c.device.multiprocessors);
}

table of_frameworks(const ask::explanation& e) {
  table rows({"framework", "best #", "of #1 it says"});
  for (const auto& f : e.frameworks) {
    rows.add(
        {std::string(f.name), place(f.best), f.refuses_first.empty() ? "can do" : f.refuses_first});
  }
  return rows;
}

table of_comm_types(const ask::explanation& e) {
  table rows({"--cp-comm-type", "schedule", "mask", "window", "sink", "best #"});
  const auto yes = [](bool can) { return can ? "yes" : "no"; };
  for (std::size_t i = 0; i < e.comm_types.size(); ++i) {
    const auto& type = cp_comm_types()[i];
    rows.add({std::string(type.name), std::string(type.schedule), "full, causal", yes(type.window),
              yes(type.sink), place(e.comm_types[i].best)});
  }
  return rows;
}

table rejections(const ask::explanation& e) {
  table rows({"rejected", "reason", "grids"});
  for (const auto& r : e.rejected) {
    std::set<std::string> grids;
    for (const auto& s : r.candidates) grids.insert(grid_of(s));
    rows.add({r.schedule, r.reason, fmt::format("{}", fmt::join(grids, ", "))});
  }
  return rows;
}

}  // namespace

std::string to_text(const ask::explanation& e, const plan_result& plan, const cluster& c) {
  auto text = fmt::format("{}\n{}\n{}\n{}\n{}", shortfalls(e, plan).str(),
                          advice(e, plan.candidates.front(), c), of_frameworks(e).str(),
                          of_comm_types(e).str(), rejections(e).str());
  for (const auto& p : plan.on_fewer) {
    const auto where =
        p.ranks == 1 ? "one rank" : fmt::format("{} ranks, {}", p.ranks, p.chosen.schedule);
    text += fmt::format("{}: {}\n", where, to_string(p.time));
  }
  return text;
}

std::string to_text(const emitted_settings& found, std::string_view framework,
                    const plan_result& plan) {
  const auto named = [&](std::size_t i) {
    const auto& s = plan.candidates[i].chosen;
    return fmt::format("{} {}", s.schedule, grid_of(s));
  };
  std::string text;
  const auto refused = found.refusals.size();
  for (std::size_t i = 0; i < refused; ++i)
    text += fmt::format("# not #{}, {}: {} {}\n", i + 1, named(i), framework, found.refusals[i]);
  return text + fmt::format("# {}: #{} of the plan, {}, {}\n{}", framework, refused + 1,
                            named(refused), to_string(plan.candidates[refused].time), found.lines);
}

}  // namespace attnsim::report
