#include "reproduce/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/error.hpp"
#include "model/named.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

const std::string unfused_merges =
    "partial outputs are merged by PyTorch's operations one by one (update_out_and_lse), 38 bytes "
    "an element; TorchScript could fuse them into 10, but the published ring steps take the longer "
    "time on both devices";

result ring_flash_attention() {
  return measured_times(
      "ring-flash-attention", {unfused_merges},
      {{"merges by one fused kernel", "",
        [](published_run& r) { r.chosen.merges = merge_kind::fused; }}},
      {"documents of unequal length: ranks differ in work and wait for each other; the figures are "
       "means of four lists of lengths"});
}

result usp() {
  return measured_times(
      "usp", {unfused_merges},
      {{"32768 tokens with heads of 128, not 32", "32768 tokens",
        [](published_run& r) { r.problem.head_dim = 128; }},
       {"a host 10 times slower than measured, as Ulysses on 8 suggests", "8192 tokens",
        [](published_run& r) { r.on.host.slowdown = 10; }}},
      {"up to 8192 tokens the host sets the time, and this one was 3 to 10 times slower than the "
       "measured one: 10 times in Ulysses' calls, 3 to 4 times in a ring's; at more tokens with "
       "few heads 1 to 2 ms come on top",
       "all-to-alls do not wait for the device at the table's commit; a synchronisation came later "
       "(pull request 87) and went again",
       "qkvpacked: one all-to-all brings Q, K and V; predictions count three",
       "the same run repeats within a factor of 3: a ring of 1 is the same whatever the layout, "
       "but took 1.8, 4.0 and 5.3 ms at 512 tokens",
       "32768 tokens: Ulysses on 8 took 10.9 ms, but a sixteenth of its time at 131072 tokens is "
       "3.9 ms; 2.8 times as long is what heads of 128 take in the same table, so the row may be "
       "of such heads (second list)",
       "head dimension 32 has no measured kernel table: its time is carried on from 128 and 64",
       "basic, packed: rings of 4 and 8 take up to half as long again as unpacked, which nothing "
       "here explains"});
}

result usp_pcie() {
  auto r = measured_times(
      "usp-pcie",
      {unfused_merges,
       "devices do not reach each other's memory: messages go through the host's; each "
       "hangs on a root port of its own, half of them on either socket"},
      {},
      {"A100: the same bytes took 17.6 to 47 ms in rings of 4 at 16384 tokens, for no reason that "
       "the table tells; no model of theirs can be within 30 % of all",
       "qkvpacked: one all-to-all brings Q, K and V; predictions count three"});
  r.fitted = {"rate of FlashAttention-2 on L20: 0.5 of A100's, not 0.38 as by peak",
              "crowding of an all-to-all through host memory: 1",
              "A100: 9.5 GB/s between the sockets, of which 0.37 are reached"};
  return r;
}

result pytorch_layers() {
  return measured_times("pytorch-layers",
                        {"a layer begins when the one before has ended; they were run in a row"},
                        {},
                        {"the host's speed wandered: one layer took up to 1.7 times as long in one "
                         "round of a hundred as in another"});
}

result magiattention() {
  return measured_times("magiattention", {}, {},
                        {"ring on 8 H100, forward, is 15 and 24 % too fast, which is not "
                         "explained: likely the kernels beside transfers",
                         "B200, backward: Ulysses is published 8 to 13 % faster than ring; here "
                         "they take as long, for lack of a rate of few heads and long sequences"});
}

constexpr study table[] = {
    {"attention2d-a100", "Attention2D over Ring Attention, GPT-3 models on 16 and 64 A100",
     "arXiv 2503.15758, result figures, digitised: speedups +-0.02, times +-1 % of full scale",
     attention2d_a100},
    {"attention2d-h100", "Attention2D over Ring Attention on 64 nodes of one H100",
     "arXiv 2503.15758, abstract", attention2d_h100},
    {"mesh", "Mesh-Attention over Ring Attention on 256 GPUs: traffic and speed",
     "arXiv 2512.20968, abstract; waiting share second-hand from a blog on the paper", mesh},
    {"ring-flash-attention", "ring, zigzag ring and striped ring on 8 A100 and 8 H800",
     "github.com/zhuzilin/ring-flash-attention README.md", ring_flash_attention},
    {"usp", "Ulysses x ring on 8 A100, forward", "github.com/feifeibear/long-context-attention",
     usp},
    {"usp-pcie", "Ulysses x ring on 4 A100 and 8 L20 without NVLink, forward",
     "github.com/feifeibear/long-context-attention", usp_pcie},
    {"pytorch-layers", "ring and Ulysses of eager PyTorch on two H200, forward",
     "measured with tests/gpu/pytorch.py, 28 November 2026", pytorch_layers},
    {"magiattention", "five schedules on 8 and 16 H100 and B200",
     "github.com/SandAI-org/MagiAttention cp_benchmark, digitised", magiattention},
    {"tensorrt-llm", "video generation on GB200 NVL72, Ring and Attention2D with Ulysses",
     "github.com/NVIDIA/TensorRT-LLM tech blog 25, pull request 13821", tensorrt_llm},
    {"flash-attention", "FlashAttention-2 and 3 on one A100 and H100",
     "github.com/Dao-AILab/flash-attention assets", flash_attention},
    {"nccl-tests", "plateaus of NCCL collectives on A100, H100, H200 and B200",
     "publications named in reproduce/published/nccl-tests.csv", nccl_tests},
    {"products", "matrix products and a transformer's layer on one H200",
     "measured, tests/gpu/products.py", products},
    {"nemo-steps",
     "training steps of Llama 2 7B on 4 to 1,024 H100, with context parallelism and without",
     "NVIDIA NeMo framework user guide 24.12, long sequence performance", nemo_steps},
    {"torchtitan-layers", "layers of Llama 3.1 8B by PyTorch's context parallelism, on two H200",
     "measured with tests/gpu/titan.py, 30 November 2026", torchtitan_layers},
    {"torchtitan-steps", "training steps of Llama 3.1 8B to 405B on 8 to 512 H100, with memory",
     "github.com/pytorch/torchtitan benchmarks/llama3_h100_202412", torchtitan_steps},
    {"megatron-steps",
     "training steps of GPT models on 8 to 512 A100, tensor and pipeline parallel",
     "arXiv 2205.05198, table 5", megatron_steps},
    {"headline-steps", "the two papers' headline speedups as those of whole training steps",
     "arXiv 2503.15758 and 2512.20968: machines of the studies above", headline_steps},
    {"nccl-mid-sizes", "NCCL collectives of 64 KiB to 64 MiB on A100, H100 and B200",
     "publications named in reproduce/published/nccl-tests.csv", nccl_mid_sizes},
    {"slices",
     "measured here: Attention2D, Mesh-Attention and USP against a ring on 16 small devices, by "
     "bandwidth",
     "two H200, 30 November 2026: reproduce/measured/slices", slices},
};

}  // namespace

std::span<const study> studies() {
  return table;
}

const study& find_study(std::string_view name) {
  try {
    return find_named(table, name);
  } catch (const std::invalid_argument& e) {
    throw input_error("NAME", std::string(name), e.what());
  }
}

std::vector<series_error> errors_of(const std::vector<point>& points) {
  std::vector<series_error> all;
  for (const auto& p : points) {
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const auto& one) { return one.series == p.series; });
    if (found == all.end()) found = all.insert(all.end(), {.series = p.series, .fitted = p.fitted});
    const double error = std::abs(p.error());
    ++found->points;
    found->mean += (error - found->mean) / static_cast<double>(found->points);
    found->max = std::max(found->max, error);
    if (error > large_error) ++found->large;
  }
  return all;
}

series_error error_of_predicted(std::vector<point> points) {
  std::erase_if(points, [](const point& p) { return p.fitted; });
  for (auto& p : points) p.series = "all predicted";
  const auto errors = errors_of(points);
  return errors.empty() ? series_error{} : errors.front();
}

}  // namespace attnsim::reproduce
