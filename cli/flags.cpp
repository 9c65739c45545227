#include "cli/flags.hpp"

#include <fmt/format.h>

#include <sstream>

#include "cli/numbers.hpp"
#include "model/attention/model_shapes.hpp"
#include "model/config.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::cli {
namespace {

constexpr const char* quiet_means = "no progress and no notes on stderr";

/// "4x2" as {4, 2}.
std::pair<int, int> parse_grid(const std::string& text) {
  const auto x = text.find('x');
  if (x == std::string::npos)
    throw input_error("--grid", text, "expected ROWSxCOLUMNS, such as 8x4");
  try {
    return {static_cast<int>(parse_count("--grid", text.substr(0, x))),
            static_cast<int>(parse_count("--grid", text.substr(x + 1)))};
  } catch (const input_error&) {
    throw input_error("--grid", text, "expected ROWSxCOLUMNS, such as 8x4");
  }
}

token_layout usual_tokens(std::string_view schedule) {
  if (schedule == "ulysses") return token_layout::contiguous;
  const bool ring = schedule.ends_with("ring") || schedule == "usp" || schedule == "burst";
  return ring ? token_layout::zigzag : token_layout::striped;
}

/// "8K,4K*2" as {8192, 4096, 4096}.
std::vector<std::int64_t> parse_documents(const std::string& list) {
  std::vector<std::int64_t> lengths;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) {
    const auto star = item.find('*');
    const auto length = parse_count("--documents", item.substr(0, star));
    const auto times =
        star == std::string::npos ? 1 : parse_count("--documents", item.substr(star + 1));
    lengths.insert(lengths.end(), static_cast<std::size_t>(times), length);
  }
  return lengths;
}

/// The paper's order needs striped tokens and a square grid.
bool suits_transpose(const strategy& s) {
  return s.schedule.starts_with("attention2d") && s.tokens == token_layout::striped &&
         (s.rows == 0 || s.rows == s.cols);
}

}  // namespace

void cluster_flags::add_to(CLI::App& app) {
  app.add_option("CLUSTER", name, "a shipped cluster (attnsim topology list) or a file")
      ->required();
  app.add_option("--nodes", nodes, "number of nodes instead of the file's");
  app.add_option("--device", device, "device profile instead of the file's");
  app.add_option("--host", host,
                 "host profile or file: what a framework takes to launch, such as pytorch "
                 "(default: nothing, as with CUDA graphs)");
  app.add_option("--ranks", ranks, "use the first N devices (default: all)");
  app.add_option("--set", set, "override a key of the cluster file: key.path=value")
      ->allow_extra_args(false);
}

cluster cluster_flags::read() const {
  cluster_overrides overrides{.device = device, .host = host};
  if (!nodes.empty()) overrides.nodes = parse_count("--nodes", nodes);
  for (const auto& assignment : set) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      throw input_error("--set", assignment, "expected key.path=value");
    overrides.set.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  return read_cluster(name, overrides);
}

int cluster_flags::ranks_of(const cluster& c) const {
  if (ranks.empty()) return c.devices();
  const auto n = parse_count("--ranks", ranks);
  if (n > c.devices()) {
    throw infeasible(
        fmt::format("--ranks: '{}': {} has {} devices; feasible: 1 to {}, or more with --nodes",
                    ranks, c.name, c.devices(), c.devices()));
  }
  return static_cast<int>(n);
}

void workload_flags::add_to(CLI::App& app) {
  app.add_option("--seq", sequence, "tokens of the sequence, such as 131072, 128K or 1M")
      ->required();
  app.add_option("--documents", documents,
                 "packed documents by length, such as 64K,16K*3,8K*2: tokens see their own only");
  app.add_option("--batch", batch, "sequences")->capture_default_str();
  app.add_option("--heads", heads, "query heads (default 32)");
  app.add_option("--kv-heads", kv_heads, "key and value heads (default: as many as heads)");
  app.add_option("--head-dim", head_dim, "elements of a head (default 128)");
  app.add_option("--model", model, "heads of a published model, such as llama3-8b");
  app.add_option("--mask", mask, "full or causal")->capture_default_str();
  app.add_option("--window", window, "sliding window in tokens, 0 for none")->capture_default_str();
  app.add_option("--dtype", dtype, "bf16, fp16 or fp32")->capture_default_str();
  app.add_option(
         "--pass", pass,
         "forward (inference), backward, both (training) or recompute (training, forward twice)")
      ->capture_default_str();
  app.add_flag("--pad", pad, "pad the sequence to what the token layout needs");
}

attention workload_flags::read(std::int64_t unit) const {
  attention a{.heads = 32};
  if (!model.empty()) use_model_shape(a, model);
  if (!heads.empty()) a.heads = parse_count("--heads", heads);
  if (model.empty()) a.kv_heads = a.heads;
  if (!kv_heads.empty()) a.kv_heads = parse_count("--kv-heads", kv_heads);
  if (!head_dim.empty()) a.head_dim = parse_count("--head-dim", head_dim);
  a.batch = parse_count("--batch", batch);
  a.sequence = parse_count("--seq", sequence);
  a.mask = parse_flag("--mask", mask, parse_mask);
  a.window = parse_count("--window", window, 0);
  a.documents = parse_documents(documents);
  a.dtype = parse_flag("--dtype", dtype, parse_data_type);
  if (pad) {
    a.padding = (unit - a.sequence % unit) % unit;
    a.sequence += a.padding;
  }
  check(a);
  return a;
}

pass_kind workload_flags::read_pass() const {
  return parse_flag("--pass", pass, parse_pass);
}

void strategy_flags::add_to(CLI::App& app, bool with_schedule) {
  if (with_schedule) {
    app.add_option("--schedule", schedule, "algorithm (attnsim schedules lists them)")
        ->capture_default_str();
    app.add_option("--kv-order", order, "direct or transposed (attention2d)");
  }
  app.add_option("--grid", grid,
                 "ROWSxCOLUMNS, such as 8x4, of ranks or of groups of --ulysses x --tp ranks");
  app.add_option("--ulysses", ulysses, "ranks of a group that exchanges tokens for heads");
  app.add_option("--tp", tensor_parallel, "tensor-parallel ranks: each has its heads of all tokens")
      ->capture_default_str();
  app.add_option("--tokens", tokens, "contiguous, zigzag or striped");
  app.add_option("--placement", placement,
                 "node-major, column-in-node, tile-in-node or custom:0,1,...");
  app.add_option("--kernel", kernel, "attention kernel of the device profile");
  app.add_option("--reduction", reduction, "ring or all-to-all, of partial outputs");
  app.add_option(
      "--merges", merges,
      "fused or unfused: of partial outputs, by one kernel or by a framework's operations");
  app.add_option("--launch-order", launch_order,
                 "communication-first or compute-first, as frameworks often launch");
  app.add_option("--partials", partials, "storage or fp32: partial outputs on the wire");
  app.add_option("--gradients", gradients, "storage or fp32: gradients on the wire");
}

strategy strategy_flags::read(mask_kind mask) const {
  strategy s;
  s.schedule = schedule;
  find_algorithm(schedule);
  s.kernel = kernel;
  if (!grid.empty()) std::tie(s.rows, s.cols) = parse_grid(grid);
  s.ulysses = ulysses.empty() ? 0 : static_cast<int>(parse_count("--ulysses", ulysses));
  s.tensor_parallel = static_cast<int>(parse_count("--tp", tensor_parallel));
  s.tokens = usual_tokens(schedule);
  if (s.schedule == "hierarchical-allgather") s.placement = "column-in-node";
  if (mask == mask_kind::full) s.tokens = token_layout::contiguous;
  if (!tokens.empty()) s.tokens = parse_flag("--tokens", tokens, parse_token_layout);
  if (!placement.empty()) s.placement = placement;
  if (!reduction.empty()) s.reduction = parse_flag("--reduction", reduction, parse_reduction);
  if (!merges.empty()) s.merges = parse_flag("--merges", merges, parse_merges);
  if (!launch_order.empty())
    s.launch = parse_flag("--launch-order", launch_order, parse_launch_order);
  if (!partials.empty()) s.partials = parse_flag("--partials", partials, parse_precision);
  if (!gradients.empty()) s.gradients = parse_flag("--gradients", gradients, parse_precision);
  if (!order.empty()) {
    s.order = parse_flag("--kv-order", order, parse_kv_order);
  } else if (suits_transpose(s)) {
    s.order = kv_order::transposed;
  }
  return s;
}

plan_request strategy_flags::fixed_in_plan(mask_kind mask) const {
  plan_request request{.fixed = read(mask)};
  request.fix_tokens = !tokens.empty();
  request.fix_placement = !placement.empty();
  request.fix_grid = !grid.empty();
  return request;
}

reader_kind parse_reader(const std::string& text) {
  if (text == "simulation") return reader_kind::simulation;
  if (text == "analytic") return reader_kind::analytic;
  throw input_error("--by", text, "expected one of: simulation, analytic");
}

void prediction_flags::add_to(CLI::App& app) {
  cluster.add_to(app);
  workload.add_to(app);
  strategy.add_to(app, true);
  app.add_option("--by", by, "simulation or analytic")->capture_default_str();
}

prediction prediction_flags::predict(const attnsim::cluster& c) const {
  const auto reader = parse_reader(by);
  const int ranks = cluster.ranks_of(c);
  const auto chosen = strategy.read(parse_flag("--mask", workload.mask, parse_mask));
  const auto problem = workload.read(layout_unit(chosen.tokens, ranks));
  return attnsim::predict(c, problem, chosen, ranks, workload.read_pass(), reader);
}

void output_flags::add_to(CLI::App& app) {
  app.add_option("--format", format, "table, json or csv")->capture_default_str();
  add_quiet(app, quiet);
}

void add_quiet(CLI::App& app, bool& quiet) {
  app.add_flag("--quiet", quiet, quiet_means);
}

void add_quiet(CLI::App& app) {
  app.add_flag("--quiet", quiet_means);
}

void add_report(CLI::App& app, std::string& file) {
  app.add_option("--report", file, "write charts and tables to this file, one HTML page");
}

}  // namespace attnsim::cli
