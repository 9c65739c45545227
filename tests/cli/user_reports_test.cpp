// What users reported to the maintainers of such libraries, and what attnsim answers them. One test a report: the thread,
// what the user saw, what the answer must say. Most ask the program as that user would. Published figures are the
// threads' own; where a figure follows by hand, the comment derives it, else only the statement is asserted.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ask/predict.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "tests/cli/program.hpp"

namespace attnsim {
namespace user_reports_test {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string answer(const std::string& question) {
  const auto r = run_program(question);
  EXPECT_EQ(r.exit_code, 0) << question << "\n" << r.messages;
  return r.output;
}

json figures(const std::string& question) {
  return json::parse(answer(question + " --format json"));
}

json candidates(const std::string& question) {
  return figures(question)["candidates"];
}

int context_parallel(const json& p) {
  return p["grid"][0].get<int>() * p["grid"][1].get<int>() * p["ulysses"].get<int>();
}

/// The one line of a question that has no answer.
std::string refusal(const std::string& question) {
  const auto r = run_program(question);
  EXPECT_EQ(r.exit_code, 3) << question << "\n" << r.output;
  return r.messages;
}

// H800: H100 with NVLink of 200 GB/s each way.
const std::string h800 = "dgx-h100 --nodes 1 --device h800-sxm5 --set 'node.bandwidth=200 GB/s' ";

// 1. https://github.com/zhuzilin/ring-flash-attention/issues/55
// 8 H800, 5 heads, 64K tokens: a ring runs at 55 % of eight devices with 8K each; the README, with 32 heads, at 85 %.
// Answer: predicted so, and the reason is the small kernels of a ring's steps, not NVLink.
TEST(user_reports, n1_few_heads_make_small_kernels) {
  const auto forward = "predict " + h800 + "--pass forward --tokens zigzag ";
  const auto rate = [&](const std::string& heads, const std::string& size) {
    return figures(forward + heads + size)["tflops_per_device"].get<double>();
  };
  const auto efficiency = [&](const std::string& heads) {
    return rate(heads, " --seq 64K") / rate(heads, " --seq 8K --ranks 1");
  };
  EXPECT_LT(efficiency("--heads 5"), 0.75);
  EXPECT_GT(efficiency("--model llama3-8b"), 0.85);
  EXPECT_THAT(answer(forward + "--heads 5 --seq 64K"),
              AllOf(HasSubstr("bound by            compute"), HasSubstr("8 calls at 5"),
                    HasSubstr("of their highest rate: small blocks, 32.00 us of launches")));
  EXPECT_THAT(answer(forward + "--heads 5 --seq 8K --ranks 1"), Not(HasSubstr("small blocks")));
  EXPECT_THAT(answer(forward + "--model llama3-8b --seq 64K"), Not(HasSubstr("small blocks")));
}

// 2. https://github.com/zhuzilin/ring-flash-attention/issues/49, /8
// "Ring is slower than flash": 13 times, with eight times the tokens on eight GPUs. Eight times the tokens are 64 times
// the visible pairs, 8 on each device: (64K)(64K + 1) / 8 over (8K)(8K + 1) = 7.999.
// Answer: the work of each device stands beside its rate, and the rates are alike.
TEST(user_reports, n2_eight_times_the_tokens_are_eight_times_the_work_a_device) {
  const auto one = figures("predict " + h800 + "--model llama3-8b --seq 8K --ranks 1");
  const auto eight = figures("predict " + h800 + "--model llama3-8b --seq 64K");
  const auto times = [&](const char* key) {
    return eight[key].get<double>() / one[key].get<double>();
  };
  EXPECT_NEAR(times("tflop_per_device"), 7.999, 1e-3);
  EXPECT_GT(times("time_s"), 8);
  EXPECT_NEAR(times("time_s"), times("tflop_per_device") / times("tflops_per_device"), 1e-9);
  EXPECT_GT(times("tflops_per_device"), 0.8);
  EXPECT_THAT(answer("predict " + h800 + "--model llama3-8b --seq 64K"),
              HasSubstr("TFLOP/s a device, for 15.39 TFLOP each"));
}

// 3. https://github.com/zhuzilin/ring-flash-attention/issues/23
// A ring on two A100 takes much more memory than expected.
// Answer: by tensor. A rank has 16,384 tokens; 32 heads of 128 in bf16 are 128 MiB, 8 K/V heads 32 MiB. Forward, beside the
// own shards: the K and V that arrive, so two of each; O in fp32, 256 MiB; its log-sum-exp, 16,384 x 32 x 4 bytes, 2 MiB.
// Backward, with gradients in fp32 as that library has them: dQ 256 MiB; dK and dV, 64 MiB each, as what came in, what the
// block adds, and their sum. From three ranks on the next K and V arrive while the last are in use.
TEST(user_reports, n3_memory_of_a_ring_by_tensor) {
  const std::string ring = "predict nd-a100-v4 --nodes 1 --heads 32 --kv-heads 8 --mask full ";
  const auto text = answer(ring + "--ranks 2 --seq 32K --gradients fp32");
  EXPECT_THAT(text, HasSubstr("k 32.00 MiB, v 32.00 MiB, o fp32 256.0 MiB, lse fp32 2.000 MiB\n"));
  EXPECT_THAT(text,
              HasSubstr("d_q fp32 256.0 MiB, d_k fp32 3 x 64.00 MiB, d_v fp32 3 x 64.00 MiB"));
  EXPECT_THAT(answer(ring + "--ranks 3 --seq 48K --pass forward"),
              HasSubstr("k 2 x 32.00 MiB, v 2 x 32.00 MiB, o fp32 256.0 MiB"));
}

// 4. https://github.com/zhuzilin/ring-flash-attention/issues/52, /81
// The all-gather of Llama 3 is slow under a causal mask.
// Answer: of contiguous chunks of n tokens rank r sees r n + n / 2 keys on average: the last 7.5 n, the mean 4 n, 15/8 of
// it. Zigzag: all alike.
TEST(user_reports, n4_contiguous_chunks_are_unequal_work) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  const attention a{.heads = 32, .kv_heads = 8, .sequence = 65536};
  strategy s{.schedule = "allgather", .rows = 8, .cols = 1, .tokens = token_layout::contiguous};
  EXPECT_NEAR(work_imbalance(c, a, s), 15.0 / 8, 1e-3);
  s.tokens = token_layout::zigzag;
  EXPECT_NEAR(work_imbalance(c, a, s), 1, 1e-9);
  const std::string gather = "predict dgx-h100 --nodes 1 --seq 64K --schedule allgather --tokens ";
  EXPECT_THAT(figures(gather + "contiguous")["warnings"],
              ElementsAre("unequal work: the rank with most has 1.87 of the mean"));
  EXPECT_THAT(figures(gather + "zigzag")["warnings"], IsEmpty());
}

// 6. https://github.com/xdit-project/xDiT/issues/553
// Eight L40 on PCIe are slower with Ulysses 8 than one alone; the figures are a picture. The maintainers: an all-to-all is
// slow over PCIe, at most Ulysses 2 there.
// Answer, for an image of 1024 x 1024 with its text and for one four times as large: Ulysses 8 gets the warning, first
// comes Ulysses 2 at most around a ring. So it is on 8 L20, where yunchang publishes 359, 449, 158 and 58 passes/s of 8,192
// tokens, striped, for Ulysses 1, 2, 4 and 8. Where devices reach each other's memory, Ulysses 4 on four of them comes before
// the ring, as published runs have it.
TEST(user_reports, n6_ulysses_over_pcie) {
  const std::string diffusion = "--mask full --pass forward ";
  for (const auto* size : {"4608", "16K"}) {
    const auto ranked = candidates("plan pcie-8 --heads 24 --schedules ulysses,usp,ring " +
                                   diffusion + "--seq " + size);
    EXPECT_LE(ranked.front()["ulysses"], 2) << size;
    EXPECT_EQ(ranked.back()["ulysses"], 8) << size;
    EXPECT_THAT(ranked.back()["warnings"], Contains(HasSubstr("not faster than one rank: ")))
        << size;
  }
  const auto time = [&](const std::string& degree) {
    return figures(
               "predict pcie-8 --schedule usp --seq 8K --heads 32 --kv-heads 8 --pass forward "
               "--tokens striped --ulysses " +
               degree)["time_s"]
        .get<double>();
  };
  EXPECT_LT(1.5 * std::max(time("1"), time("2")), time("4"));
  EXPECT_LT(2 * time("4"), time("8"));
  const auto ranked = candidates(
      "plan pcie-8 --ranks 4 --set node.peer_access=all --heads 24 "
      "--schedules ulysses,ring --seq 4608 " +
      diffusion);
  EXPECT_EQ(ranked.front()["schedule"], "ulysses");
}

// 8. https://github.com/NVIDIA/nccl/issues/1428, /1433
// Kernels slow down 1.8 times and more while NCCL runs: attention takes 0.33 ms in place of 0.18.
// Answer: a step is never the larger of its two parts. Two ranks of 16,384 tokens, 8 heads of 128, 1 PFLOP/s: the first
// kernel takes c = 4 x 16384^2 x 8 x 128 / 1e15 = 1.0995 ms; K and V are 67.109 MB, x = 1.342 ms at 50 GB/s and 2.684 ms at
// half of it, and 2 us. A transfer all along the kernel (x > 1.83 c) makes it take 1.83 c; a shorter one does x / 1.83 of
// its work in x, so the step takes c + x (1 - 1/1.83).
TEST(user_reports, n8_kernels_slow_down_beside_transfers) {
  const double k = 0.33 / 0.18, c = 4.0 * 16384 * 16384 * 8 * 128 / 1e15;
  const auto run = [](const std::string& link, double slowdown) {
    return figures(
        "predict star --ranks 2 --seq 32K --heads 8 --mask full --pass forward --set "
        "'nics.bandwidth=" +
        link + "' --set device.transports.network.channels=8 --set device.communication_slowdown=" +
        std::to_string(slowdown));
  };
  const double compute = run("50 GB/s", 1)["compute_s"];
  const double long_one = run("25 GB/s", k)["compute_s"];
  EXPECT_NEAR(long_one - compute, (k - 1) * c, 1e-7);
  const double short_one = run("50 GB/s", k)["time_s"], x = 2.0 * 16384 * 8 * 128 * 2 / 50e9 + 2e-6;
  EXPECT_NEAR(short_one - compute, x * (1 - 1 / k), 1e-7);
}

// 10. https://github.com/verl-project/verl/pull/970
// 8 H100: TP 4, DP 2, CP 1 beats TP 4, DP 1, CP 2.
// Answer: two sequences that fit in memory are split before the sequence is.
TEST(user_reports, n10_no_context_parallelism_where_it_fits) {
  const auto ranked =
      candidates("plan dgx-h100 --nodes 1 --model llama3-8b --seq 8K --batch 2 --tp 4");
  EXPECT_EQ(ranked.front()["dp"], 2);
  EXPECT_EQ(context_parallel(ranked.front()), 1);
  EXPECT_EQ(ranked.back()["dp"], 1);
  EXPECT_EQ(context_parallel(ranked.back()), 2);
}

// 12. https://github.com/NVIDIA/TransformerEngine/issues/1930, /1929, https://github.com/NVIDIA/Megatron-LM/issues/1669
// 7 tokens on 2 ranks fail inside the library.
// Answer: pad to a multiple of 2 x 2, 8, and what that wastes: 36 causal pairs in place of 28.
TEST(user_reports, n12_sequences_need_padding) {
  const std::string seven = "predict dgx-h100 --nodes 1 --ranks 2 --seq 7 --pass forward";
  EXPECT_EQ(
      refusal(seven),
      "attnsim: --seq: '7': not a multiple of 4, as zigzag tokens over 2 ranks need; pad by 1 to 8 "
      "(14.3 % more tokens, 28.6 % more work) or cut to 4; striped tokens take 6\n");
  EXPECT_THAT(
      figures(seven + " --pad")["warnings"],
      ElementsAre("padding is 1 of 8 tokens; a kernel that computes it does 28.6 % more work"));
}

// 13. https://github.com/deepspeedai/DeepSpeed/issues/4674, https://github.com/verl-project/verl/issues/1226
// Ulysses on 64 GPUs with 48 heads; on more than 8 with 40 query and 8 K/V heads.
// Answer: the degrees that share the heads evenly (40 needs copies of K/V heads), and a ring or a grid for the rest.
TEST(user_reports, n13_more_ranks_than_heads) {
  const std::string ulysses = "predict nd-h100-v5 --nodes 8 --seq 64K --schedule ulysses ";
  const std::string no_grid = "attnsim: --schedule: 'ulysses': no grid of 64 ranks will do; ";
  const std::string rest = "; on more ranks: usp, a ring around it, or attention2d\n";
  EXPECT_EQ(refusal(ulysses + "--heads 48"),
            no_grid +
                "ulysses 64 does not suit 48 query and 48 K/V heads a rank; even degrees: 1, 2, "
                "3, 4, 6, 8, 12, "
                "16, 24, 48" +
                rest);
  EXPECT_EQ(refusal(ulysses + "--heads 40 --kv-heads 8"),
            no_grid +
                "ulysses 64 does not suit 40 query and 8 K/V heads a rank; even degrees: 1, 2, "
                "4, 8, 40" +
                rest);
  EXPECT_EQ(figures("predict star --nodes 40 --seq 40K --heads 40 --kv-heads 8 --schedule ulysses")
                ["ulysses"],
            40);
  std::set<std::string> others;
  const auto ranked = candidates(
      "plan nd-h100-v5 --nodes 8 --seq 64K --heads 48 --pass forward "
      "--schedules ulysses,usp,attention2d");
  for (const auto& p : ranked) {
    others.insert(p["schedule"]);
    EXPECT_EQ(context_parallel(p), 64);
  }
  EXPECT_THAT(others, ElementsAre("attention2d", "usp"));
}

// 16. https://github.com/NVIDIA/nccl-tests/issues/178
// NVLink in pairs only: all-reduce runs at 208 GB/s on 2 GPUs, at 20 GB/s on 3.
// Answer: the drop is predicted (an all-gather, within a factor of two), and the innermost groups are to be the pairs.
TEST(user_reports, n16_nvlink_in_pairs) {
  const temporary_folder folder;
  const auto matrix =
      folder.write("topo.txt",
                   "     GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 CPU Affinity NUMA Affinity\n"
                   "GPU0  X   NV12 NODE NODE SYS  SYS  SYS  SYS  0-31,64-95   0\n"
                   "GPU1 NV12  X   NODE NODE SYS  SYS  SYS  SYS  0-31,64-95   0\n"
                   "GPU2 NODE NODE  X   NV12 SYS  SYS  SYS  SYS  0-31,64-95   0\n"
                   "GPU3 NODE NODE NV12  X   SYS  SYS  SYS  SYS  0-31,64-95   0\n"
                   "GPU4 SYS  SYS  SYS  SYS   X   NV12 NODE NODE 32-63,96-127 1\n"
                   "GPU5 SYS  SYS  SYS  SYS  NV12  X   NODE NODE 32-63,96-127 1\n"
                   "GPU6 SYS  SYS  SYS  SYS  NODE NODE  X   NV12 32-63,96-127 1\n"
                   "GPU7 SYS  SYS  SYS  SYS  NODE NODE NV12  X   32-63,96-127 1\n");
  const auto cluster = folder.file("pairs.yaml");
  answer("topology import " + matrix + " --device a100-pcie-80gb --out " + cluster);
  const auto rate = [&](int ranks) {
    const auto p = figures("predict " + cluster +
                           " --seq 96K --mask full --pass forward --schedule allgather --ranks " +
                           std::to_string(ranks));
    return p["bytes_sent_per_rank"]["max"].get<double>() /
           p["exposed_communication_s"].get<double>() / 1e9;
  };
  EXPECT_NEAR(std::log2(rate(2) / 208), 0, 1);
  EXPECT_NEAR(std::log2(rate(3) / 20), 0, 1);
  const auto best =
      candidates("plan " + cluster + " --seq 64K --model llama3-8b --pass forward")[0];
  const int innermost = best["ulysses"] > 1 ? best["ulysses"] : best["grid"][1];
  EXPECT_EQ(innermost, 2) << best;
  EXPECT_EQ(best["placement"], "node-major") << "ranks 2i and 2i + 1 on devices 2i and 2i + 1";
}

// 19. https://github.com/NVIDIA/nccl/issues/1218
// 256 H100: all-reduce reaches 340 GB/s, all-gather 200. The one is reduced inside the switches (NVLS, SHARP).
// Answer: calibrated with an all-reduce log alone, all-gather keeps the rate that it had, and a warning says so. The log: 3
// ms and 340 GB/s of bus bandwidth, 2 x 255/256 bytes sent for each byte; nodes have eight NICs of 50 GB/s: 0.85 of them.
TEST(user_reports, n19_all_reduce_says_nothing_of_all_gather) {
  const temporary_folder folder;
  std::string log =
      "# build/all_reduce_perf\n# size count type redop root time algbw busbw #wrong time algbw "
      "busbw #wrong\n";
  for (std::int64_t bytes = 1 << 26; bytes <= std::int64_t{1} << 32; bytes *= 2) {
    const double us = 3000 + 2 * 255.0 / 256 * static_cast<double>(bytes) / 340e3;
    log += fmt::format("{} 1 float sum -1 {} 1 1 0 1 1 1 0\n", bytes, us);
  }
  const auto profile = folder.file("mine.yaml");
  const auto said = answer("calibrate --device h100-sxm5 --out " + profile + " --nccl-tests " +
                           folder.write("log.txt", log) + "@dgx-h100");
  EXPECT_THAT(said,
              HasSubstr("network: only all-reduce was measured, whose bus bandwidth in-network "
                        "reduction (NVLS, SHARP) raises; all-gather and reduce-scatter keep "
                        "the prior's rate: measure them"));
  const auto before = read_device_file("h100-sxm5").transport(link_kind::network);
  const auto after = read_device_file(profile).transport(link_kind::network);
  EXPECT_NEAR(after.all_reduce_efficiency, 0.85, 0.01);
  EXPECT_NEAR(after.collective_efficiency, before.collective_efficiency, 1e-4);
}

// 21. https://github.com/NVIDIA/TensorRT-LLM/pull/18705
// Mapping of ranks to rows and columns untested where a column has several ranks.
// Answer: on 2 x 3 rank 4 is (1, 1), its row {3, 4, 5}, its column {1, 4}: Q is gathered among three, K and V among two.
TEST(user_reports, n21_rows_and_columns) {
  const auto s = make_schedule({.schedule = "attention2d", .rows = 2, .cols = 3},
                               {.heads = 8, .kv_heads = 8, .sequence = 96, .mask = mask_kind::full},
                               pass_kind::forward);
  EXPECT_EQ(s.grid.coordinate(4, 0), 1);
  EXPECT_EQ(s.grid.coordinate(4, 1), 1);
  std::map<tensor, std::vector<int>> gathered;
  for (const auto& op : s.program) {
    if (op.kind != op_kind::all_gather) continue;
    for (const auto& block : op.reads) gathered[block.what] = s.grid.group(4, op.axes);
  }
  EXPECT_THAT(gathered[tensor::q], ElementsAre(3, 4, 5));
  EXPECT_THAT(gathered[tensor::k], ElementsAre(1, 4));
  EXPECT_THAT(gathered[tensor::v], ElementsAre(1, 4));
}

// 22. https://github.com/NVIDIA/TransformerEngine/issues/2541
// A learnable softmax (attention sink) is refused with --cp-comm-type p2p.
// Answer: what each type can do, before it is chosen, and which candidate is its best. With a window, of those that have it.
TEST(user_reports, n22_what_each_cp_comm_type_can_do) {
  const std::string plan =
      "plan dgx-h100 --nodes 1 --ranks 4 --seq 32K --model llama3-8b --pass forward --tokens "
      "zigzag "
      "--schedules ring,allgather,ulysses,usp --explain";
  EXPECT_THAT(answer(plan), ContainsRegex("--cp-comm-type +schedule +mask +window +sink +best #\n"
                                          "p2p +ring +full, causal +no +no +[1-4]\n"
                                          "allgather +allgather +full, causal +yes +no +[1-4]\n"
                                          "a2a +ulysses +full, causal +yes +yes +[1-4]\n"
                                          "a2a\\+p2p +usp +full, causal +no +no +[1-4]\n"));
  EXPECT_THAT(answer(plan + " --window 4K"),
              ContainsRegex("p2p +ring +full, causal +no +no +-\n"
                            "allgather +allgather +full, causal +yes +no +[1-4]\n"
                            "a2a +ulysses +full, causal +yes +yes +[1-4]\n"
                            "a2a\\+p2p +usp +full, causal +no +no +-\n"));
}

}  // namespace user_reports_test
}  // namespace attnsim
