// Schedules on sixteen slices of two H200, each with a link of its own (tests/gpu/slices.py): how many times faster than a ring, by
// bandwidth. The profile of a slice is fitted to one slice and to transfers between two (slice-h200.yaml), nothing to these runs.
#include <fmt/format.h>

#include <map>

#include "ask/predict.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"
#include "sim/parallel.hpp"

namespace attnsim::reproduce {
namespace {

double predicted_slice_ms(const published_row& row) {
  auto c =
      read_cluster(find_published("slices.yaml"), {.set = {{"nics.bandwidth", row.text("link")}}});
  c.device = read_device_file(find_published("slice-h200.yaml"));
  const strategy s{.schedule = row.text("schedule"),
                   .rows = static_cast<int>(row.integer("rows")),
                   .cols = static_cast<int>(row.integer("cols")),
                   .ulysses = static_cast<int>(row.integer("ulysses")),
                   .tokens = parse_token_layout(row.text("tokens")),
                   .kernel = "attnsim-cuda",
                   .start = run_start::idle};
  const attention a{.heads = row.integer("heads"),
                    .kv_heads = row.integer("kv_heads"),
                    .head_dim = 128,
                    .sequence = row.integer("sequence"),
                    .mask = parse_mask(row.text("mask"))};
  return predict(c, a, s, c.devices(), parse_pass(row.text("pass"))).time.value() * 1e3;
}

}  // namespace

result slices() {
  const auto rows = published("slices");
  std::vector<double> predicted(rows.size());
  parallel_for(rows.size(), [&](std::size_t i) { predicted[i] = predicted_slice_ms(rows[i]); });
  const auto question = [](const published_row& row) {
    return fmt::format("{} Gb/s, {}", row.text("gbits"), row.text("pass"));
  };
  struct times {
    double measured, predicted;
  };
  std::map<std::string, times> ring;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].text("schedule") == "ring")
      ring[question(rows[i])] = {rows[i].number("time_ms"), predicted[i]};
  }
  result r{.unit = "times as fast as ring"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& schedule = rows[i].text("schedule");
    const auto found = ring.find(question(rows[i]));
    if (schedule == "ring" || found == ring.end()) continue;
    r.points.push_back({schedule, found->first, found->second.measured / rows[i].number("time_ms"),
                        found->second.predicted / predicted[i]});
  }
  r.assumptions = {
      "measured here: 8 query and 4 K/V heads of 128, 8K tokens, full mask, medians of three runs",
      "a slice has 14 multiprocessors, NCCL's sockets two channels; links serve connections "
      "in turn"};
  r.notes = {
      "bytes alone: 1.67 for Attention2D and Mesh-Attention forward; Attention2D's paper has 2.81 "
      "on average on 16 A100, forward and backward, with as many K/V heads as query heads"};
  return r;
}

}  // namespace attnsim::reproduce
