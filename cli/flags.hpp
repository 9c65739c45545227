// The flags that several commands share, and what they stand for.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/schedule/strategy.hpp"
#include "sim/planner.hpp"

namespace attnsim::cli {

/// CLUSTER, --nodes, --device, --host, --set, --ranks.
struct cluster_flags {
  std::string name;
  std::string nodes, device, host, ranks;
  std::vector<std::string> set;

  void add_to(CLI::App&);
  cluster read() const;
  /// --ranks, or all devices. Throws infeasible when the cluster has fewer.
  int ranks_of(const cluster&) const;
};

/// --seq, --documents, --batch, --heads, --kv-heads, --head-dim, --mask, --window, --dtype, --pass, --model, --pad.
struct workload_flags {
  std::string sequence, documents, batch = "1", heads, kv_heads, head_dim, mask = "causal",
                                   window = "0", dtype = "bf16", pass = "both", model;
  bool pad = false;

  void add_to(CLI::App&);
  /// With --pad the sequence grows to the next multiple that `unit` tokens need.
  attention read(std::int64_t unit) const;
  pass_kind read_pass() const;
};

/// --schedule, --grid, --ulysses, --tp, --tokens, --placement, --kernel, --kv-order, --reduction, --merges, --launch-order, --partials, --gradients.
struct strategy_flags {
  std::string schedule = "ring", grid, ulysses, tensor_parallel = "1", tokens, placement, kernel,
              order, reduction, merges, launch_order, partials, gradients;

  /// `with_schedule`: predict chooses one schedule; plan has --schedules instead.
  void add_to(CLI::App&, bool with_schedule);
  /// Tokens not given: zigzag for the rings, contiguous for ulysses and under a full mask, else striped. Order not given:
  /// the paper's transposed order for Attention2D where it applies. Ulysses degree not given: the schedule's choice.
  strategy read(mask_kind) const;
  /// A plan with its `fixed` fields; the rest is to be filled in.
  plan_request fixed_in_plan(mask_kind) const;
};

/// simulation or analytic. Throws input_error naming --by.
reader_kind parse_reader(const std::string& text);

/// All that one prediction needs: those above and --by.
struct prediction_flags {
  cluster_flags cluster;
  workload_flags workload;
  strategy_flags strategy;
  std::string by = "simulation";

  void add_to(CLI::App&);
  prediction predict(const attnsim::cluster&) const;
};

/// --format and --quiet.
struct output_flags {
  std::string format = "table";
  bool quiet = false;

  void add_to(CLI::App&);
};

/// --quiet: nothing on stderr but errors. Without a place for it: there never is anything else.
void add_quiet(CLI::App&, bool& quiet);
void add_quiet(CLI::App&);

/// --report FILE.html.
void add_report(CLI::App&, std::string& file);

/// Runs a parser that throws std::invalid_argument with what is expected; the message then names the flag and value.
template <typename Parser>
auto parse_flag(const std::string& flag, const std::string& text, Parser parser) {
  try {
    return parser(text);
  } catch (const std::invalid_argument& e) {
    throw input_error(flag, text, e.what());
  }
}

}  // namespace attnsim::cli
