// The two papers' headline speedups as speedups of a whole training step of their models: attention's share of the step decides.
// Machines as in the studies attention2d-h100, attention2d-a100 and mesh; nothing is published to compare with.
#include <fmt/format.h>

#include "ask/step.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

using fields = std::vector<std::pair<const char*, const char*>>;

struct headline {
  std::string machine;
  cluster on;
  std::string model;
  std::int64_t gpus = 0;
  std::string tokens;
  fields ring, rival;
};

cluster h100_alone(double send_receive_penalty) {
  auto c = read_cluster("nc-h100-v5", {.nodes = 64, .set = {{"nics.bandwidth", "40 Gb/s"}}});
  auto& network = c.device.transports[static_cast<int>(link_kind::network)];
  network.efficiency = network.collective_efficiency / send_receive_penalty;
  return c;
}

/// The speed that makes a ring of 128 wait as long as published (study mesh).
cluster mesh_machines() {
  return read_cluster(find_published("mesh.yaml"), {.set = {{"nics.bandwidth", "9.7 GB/s"}}});
}

std::vector<headline> headlines() {
  const fields plain{{"schedule", "ring"}, {"tokens", "striped"}};
  const fields single{{"schedule", "ring"}, {"tokens", "striped"}, {"gradients", "fp32"}};
  const fields square{
      {"schedule", "attention2d"}, {"tokens", "striped"}, {"kv-order", "transposed"}};
  const fields tile{{"schedule", "mesh"},
                    {"grid", "32x8"},
                    {"tokens", "striped"},
                    {"partials", "fp32"},
                    {"gradients", "fp32"}};
  std::vector<headline> all;
  for (const auto* model : {"gpt3-760m", "gpt3-2.7b", "gpt3-13b"}) {
    for (const auto* tokens : {"32K", "128K"}) {
      all.push_back({"64 nodes of one H100, 40 Gb/s, bytes alone", h100_alone(1), model, 64, tokens,
                     plain, square});
      all.push_back({"the same, a ring with fp32 gradients, send/recv 1.5 times as long",
                     h100_alone(1.5), model, 64, tokens, single, square});
    }
  }
  for (const auto* tokens : {"256K", "1M"})
    all.push_back({"256 H100 in nodes of 8, Mesh-Attention's tile 8 x 32", mesh_machines(),
                   "llama2-7b", 256, tokens, single, tile});
  return all;
}

ask::step_answer step_of(const headline& h, const fields& schedule) {
  ask::step_question q;
  q.model = h.model;
  set(q, "seq", h.tokens);
  set(q, "ranks", std::to_string(h.gpus));
  set(q, "cp", std::to_string(h.gpus));
  set(q, "shard", "parameters");
  for (const auto& [name, text] : schedule) set(q, name, text);
  return ask::answer(q, h.on);
}

}  // namespace

result headline_steps() {
  result r{.unit = "times as fast as with Ring Attention"};
  for (const auto& h : headlines()) {
    const auto ring = step_of(h, h.ring), rival = step_of(h, h.rival);
    const auto figure = fmt::format("{}, {} tokens, {}: {}", h.model, h.tokens,
                                    rival.attention.chosen.schedule, h.machine);
    r.what_ifs.push_back({"attention", figure, 0, ring.attention.time / rival.attention.time});
    r.what_ifs.push_back({"the whole step", figure, 0, ring.time / rival.time});
  }
  r.assumptions = {
      "one sequence over all devices (context parallel), FSDP, bf16, nothing recomputed",
      "machines as in the studies attention2d-h100 (with its two causes) and mesh (with its fitted "
      "bandwidth)",
      "Mesh-Attention's models are not known: Llama 2 7B has the 32 heads of its study"};
  return r;
}

}  // namespace attnsim::reproduce
