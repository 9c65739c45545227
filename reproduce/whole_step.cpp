// Whole training steps: NeMo on 4 to 1,024 H100, with context parallelism and the best without, and torchtitan on 8 to 512 H100 with
// its memory. Fitted: how fast torchtitan's H100 are at 500 W, on one row; of NeMo without context parallelism how much more it holds
// than is counted, on one, and over how many nodes its tensor ranks spread, on another.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ask/step_plan.hpp"
#include "reproduce/published.hpp"
#include "reproduce/solve.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

constexpr std::int64_t tokens_a_step = 4 << 20;

ask::step_question question_of(const published_row& row, const std::string& model) {
  ask::step_question q;
  q.model = model;
  set(q, "kernel", "fa2");
  for (const auto* field : {"seq", "tp", "pp", "dp", "cp", "dtype", "recompute"})
    set(q, field, row.text(field));
  set(q, "ranks", row.text("gpus"));
  q.eager = row.text("eager") == "yes";
  return q;
}

std::string name_of(const published_row& row) {
  return fmt::format("{} GPUs, {} tokens, tp {} pp {} cp {}", row.text("gpus"), row.text("seq"),
                     row.text("tp"), row.text("pp"), row.text("cp"));
}

/// As NeMo counts them: all pairs of tokens, whatever the mask.
double nemo_operations_a_token(const transformer& t, std::int64_t sequence) {
  const double masked = model_operations_a_token(t, sequence);
  auto full = t;
  full.shape.mask = mask_kind::full;
  full.limited = full.shape;
  return std::max(masked, model_operations_a_token(full, sequence));
}

cluster nodes_of_h100(std::int64_t gpus) {
  constexpr std::int64_t devices_a_node = 8;
  return read_cluster("dgx-h100", {.nodes = std::max<std::int64_t>(1, gpus / devices_a_node)});
}

/// What NeMo holds of activations over what the formula counts: fitted so that 256K tokens have no room on 16 tensor ranks without
/// recomputation, as their rate without context parallelism shows.
constexpr double held_over_counted = 1.3;

bool has_room_in_nemo(const ask::step_answer& a, const cluster& c) {
  return a.memory.total() + (held_over_counted - 1) * a.memory.activations <=
         static_cast<double>(c.device.memory.value());
}

/// Over how many nodes tensor ranks may spread at most; the second is fitted to the rate of 512K tokens without context parallelism.
constexpr int tensor_nodes[] = {1, 2, 4};
constexpr std::size_t fitted_nodes = 1;
constexpr std::int64_t fitted_lengths[] = {262144, 524288};

/// The fastest without context parallelism that has room, for each of `tensor_nodes`, TFLOP/s a GPU as NeMo counts; zero where nothing
/// has. Megatron's own selective recomputation has nothing to do beside FlashAttention.
std::array<double, std::size(tensor_nodes)> best_without(const published_row& row, const cluster& c,
                                                         const transformer& t) {
  ask::step_plan_request request{.asked = question_of(row, "llama2-7b"), .schedules = {"ring"}};
  request.slack = std::numeric_limits<double>::infinity();
  request.finalists = std::numeric_limits<std::size_t>::max();
  auto& q = request.asked;
  q.context = q.chunks = 1;
  q.tensor = q.pipeline = q.data = q.micro_batch = {};
  q.shard = sharding::optimizer;
  q.tensor_overlap = true;
  q.global_batch = tokens_a_step / *q.base.sequence;
  std::array<double, std::size(tensor_nodes)> best{};
  for (const auto recompute : {recomputation::none, recomputation::full}) {
    q.recompute = recompute;
    try {
      for (const auto& a : ask::plan(request, c).candidates) {
        const double rate = a.tokens_a_second * nemo_operations_a_token(t, a.sequence) / 1e12;
        if (!has_room_in_nemo(a, c)) continue;
        for (std::size_t i = 0; i < best.size(); ++i) {
          if (a.cut.tensor <= tensor_nodes[i] * c.devices_per_node)
            best[i] = std::max(best[i], rate);
        }
      }
    } catch (const infeasible&) {  // nothing fits
    }
  }
  return best;
}

/// 96 GB of HBM2e, of which drivers leave 95 GiB at most, at 2.4 TB/s.
cluster torchtitan_hosts(std::int64_t gpus, double speed) {
  auto c = nodes_of_h100(gpus);
  c.device.memory = parse<byte_count>("95 GiB");
  c.device.memory_bandwidth = parse<bandwidth>("2.4 TB/s");
  c.device_speed.assign(c.device_speed.size(), speed);
  return c;
}

ask::step_answer torchtitan_step(const published_row& row, double speed,
                                 const std::string& tokens = "zigzag") {
  auto q = question_of(row, row.text("model"));
  for (const auto& [field, column] : {std::pair{"micro-batch", "micro_batch"}, {"vp", "vp"}})
    set(q, field, row.text(column));
  q.global_batch = row.integer("micro_batch") * row.integer("micro_batches") * row.integer("dp");
  q.shard = sharding::parameters;
  q.tensor_overlap = row.text("async") == "yes";
  if (row.integer("cp") > 1) {
    set(q, "framework", "torchtitan");
    set(q, "schedule", "allgather");
    set(q, "tokens", tokens);
  }
  return ask::answer(q, torchtitan_hosts(row.integer("gpus"), speed));
}

}  // namespace

result nemo_steps() {
  result r{.unit = "TFLOP/s a GPU as NeMo counts them, and their ratio"};
  const auto t = read_transformer("llama2-7b");
  for (const auto& row : published("whole-step")) {
    const auto c = nodes_of_h100(row.integer("gpus"));
    auto q = question_of(row, "llama2-7b");
    set(q, "micro-batch", row.text("local_batch"));
    q.shard = sharding::optimizer;
    q.tensor_overlap = true;
    q.global_batch = tokens_a_step / *q.base.sequence;
    const auto a = ask::answer(q, c);
    const double rate = a.tokens_a_second * nemo_operations_a_token(t, a.sequence) / 1e12;
    r.points.push_back({"with CP", name_of(row), row.number("value"), rate});
    if (!a.feasible) r.notes.push_back(name_of(row) + ": " + a.warnings.front());
    auto faster = q;
    set(faster, "kernel", "cudnn-9");
    r.what_ifs.push_back(
        {"attention by cuDNN 9, not FlashAttention-2", name_of(row), row.number("value"),
         ask::answer(faster, c).tokens_a_second * nemo_operations_a_token(t, a.sequence) / 1e12});
    if (row.integer("cp") == 1) continue;
    const auto fastest = best_without(row, c, t);
    const double without = fastest[fitted_nodes];
    const bool is_fitted = std::find(std::begin(fitted_lengths), std::end(fitted_lengths),
                                     row.integer("seq")) != std::end(fitted_lengths);
    const auto figure = fmt::format("{} tokens", row.text("seq"));
    const auto add = [&](const std::string& series, double published, double predicted) {
      r.points.push_back({is_fitted ? "fitted" : series,
                          is_fitted ? series + ", " + figure : figure, published, predicted,
                          is_fitted});
    };
    add("without CP", row.number("without_cp"), without);
    for (std::size_t i = 0; i < fastest.size(); ++i) {
      if (i != fitted_nodes)
        r.what_ifs.push_back({fmt::format("tensor ranks over {} nodes at most", tensor_nodes[i]),
                              "without CP, " + figure, row.number("without_cp"), fastest[i]});
    }
    if (without > 0)
      add("gain of CP", row.number("value") / row.number("without_cp"), rate / without);
  }
  r.assumptions = {
      "TFLOP/s by NeMo's formula, which counts all pairs of tokens under the causal mask too",
      "4M tokens a step at every length: the page states no batch here, its later edition this one",
      "attention by FlashAttention-2 as a ring over zigzag tokens, told by the longest row: cuDNN "
      "9 would be far faster than published (second list)",
      "linear layers in FP8; optimizer states sharded, their exchanges beside the passes; tensor "
      "exchanges in pieces beside products; nothing recomputed with CP",
      "without CP: the fastest of all pipeline degrees, micro-batches, full recomputation or none, "
      "that has room, tensor ranks over two nodes at most"};
  r.fitted = {
      "activations held over those counted: 1.3, so that 262144 tokens have no room on 16 tensor "
      "ranks without recomputation (their 392 TFLOP/s are what full recomputation gives)",
      "tensor ranks over two nodes, nearer to 524288 tokens than one or four (second list)"};
  r.notes.emplace_back(
      "without CP: settings are not published. A later edition says that query groups, here 32, "
      "limit the tensor ranks, not a node. At 524288 and 1048576 tokens the published rates are "
      "those of two nodes with everything recomputed, though a step that keeps all has room");
  return r;
}

result torchtitan_steps() {
  const auto rows = published("torchtitan-steps");
  const auto& fitted = rows[1];
  const double speed = solve_falling(
      [&](double share) {
        return fitted.number("value") - torchtitan_step(fitted, share).tokens_a_second;
      },
      0.3, 1.0);
  result r{.unit = "tokens/s a GPU; GiB"};
  for (const auto& row : rows) {
    const auto a = torchtitan_step(row, speed);
    const auto figure = fmt::format("{}, {}{}{}{}", name_of(row), row.text("dtype"),
                                    row.text("eager") == "yes" ? ", eager" : "",
                                    row.integer("vp") > 1 ? ", interleaved" : "",
                                    row.text("async") == "yes" ? ", async" : "");
    const bool is_fitted = &row == &fitted;
    const bool shares = row.integer("cp") > 1;
    r.points.push_back({is_fitted ? "fitted" : "rate on " + row.text("series"), figure,
                        row.number("value"), a.tokens_a_second, is_fitted});
    constexpr double gib = 1 << 30;
    r.points.push_back({"memory on " + row.text("series"), figure, row.number("memory_gib"),
                        a.memory.total() / gib});
    if (!shares) continue;
    r.what_ifs.push_back({"contiguous tokens, as without load balancing", figure,
                          row.number("value"),
                          torchtitan_step(row, speed, "contiguous").tokens_a_second});
    r.what_ifs.push_back({"contiguous tokens, and devices at full speed", figure,
                          row.number("value"),
                          torchtitan_step(row, 1, "contiguous").tokens_a_second});
  }
  r.fitted = {fmt::format("speed of an H100 at 500 W over one at 700 W: {:.2f}", speed)};
  r.assumptions = {
      "FSDP over data and context ranks, two layers gathered ahead, gradients reduced in fp32; "
      "under a pipeline gathered once, summed once, both kept whole meanwhile "
      "(parallelize_llama.py)",
      "attention by FlashAttention-2 (PyTorch's, which context ranks are bound to), keys and "
      "values repeated for all query heads (repeat_kv) and all-gathered, zigzag tokens "
      "(round-robin load balance): defaults of that day",
      "as many micro-batches as pipeline stages, the default; tensor exchanges in pieces beside "
      "products where they are asynchronous",
      "selective: PyTorch keeps what attention and every second product put out",
      "memory: states of 16 bytes a parameter over their replicas, kept activations, gathered "
      "layers and embeddings, the output layer's input, logits in four forms (eager: five), over "
      "tensor ranks in bf16 and in four forms of fp32 (loss_parallel), blocks of the last layer's "
      "forward pass: what the allocator has reserved, which torchtitan prints (train.py)"};
  r.notes = {
      "the rows of 4 and 8 context ranks on 8 GPUs are the only ones that are far off. On 512 GPUs "
      "the same code over as many context ranks is as predicted with load balance, and not without "
      "it (second list); so are 2 on 8 GPUs. A step of the ring beyond the first takes 7.3 s in "
      "the two rows, of which 8.4 s are published for one rank, and 4.5 s in that of 2. What both "
      "rows lack is 60 ms for each layer and step of the ring, and that of 2 nothing. Measured "
      "since on H200 (torchtitan-layers): what a rank of 2, 4 and 8 computes takes 340, 606 and "
      "1,092 ms a layer, as predicted; the rows say 403, 956 and 1,868. So it is not the kernels, "
      "not their balance, not merges and copies (3 ms a layer and step compiled, 8 eager), not "
      "recompilation. Nor is it, as far as can be told, load balance that was off: compiled ranks "
      "without it would wait for each other for ever. What two GPUs cannot show is left: exchanges "
      "among more than two of that host, and the host itself",
      "memory beside the loss: blocks of logits in bf16 and of what the last layer's forward pass "
      "held, into none of which logits in fp32 fit. The 70B model's figures with and without "
      "asynchronous tensor exchanges tell: they differ by 4.3 GiB, two gathered activations, which "
      "no one holds while logits are there",
      "collectives of context ranks are not hidden, as torch.compile waits where they are called: "
      "so it is here"};
  return r;
}

}  // namespace attnsim::reproduce
