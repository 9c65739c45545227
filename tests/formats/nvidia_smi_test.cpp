#include <gmock/gmock.h>

#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace nvidia_smi_test {

using testing::AllOf;
using testing::Contains;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double gen5 = 63.0154;  // 32 GT/s x 16 / 8 x 128 / 130 GB/s

constexpr const char* pairs = R"(
        GPU0    GPU1    GPU2    GPU3    mlx5_0  CPU Affinity    NUMA Affinity
GPU0     X      NV4     PXB     SYS     PIX     0-7     0
GPU1    NV4      X      NODE    SYS     NODE    0-7     0
GPU2    PXB     NODE     X      SYS     PXB     0-7     0
GPU3    SYS     SYS     SYS      X      SYS     8-15    1
mlx5_0  PIX     NODE    PXB     SYS      X

Legend:
)";

TEST(nvidia_smi, builds_a_tree_from_relations) {
  const auto t = read_text(pairs);
  // GPU0 and the NIC share a switch (PIX), which GPU2 reaches over another (PXB); GPU1 is in the
  // same domain (NODE), GPU3 in another. Cables: 2 + 2 + 2 below the first domain, 1 below the
  // second, one between them, one NVLink.
  EXPECT_EQ(counts_of(t), (counts{4, 1, 4, 0, 9}));
  EXPECT_THAT(neighbours(t, "pcie0"), ElementsAre("gpu0", "nic0", "pcie1"));
  EXPECT_THAT(neighbours(t, "pcie1"), ElementsAre("cpu0", "gpu2", "pcie0"));
  EXPECT_THAT(neighbours(t, "cpu0"), ElementsAre("cpu1", "gpu1", "pcie1"));
  EXPECT_THAT(neighbours(t, "cpu1"), ElementsAre("cpu0", "gpu3"));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(100));
  EXPECT_THAT(t.said.warnings,
              ElementsAre("GPU2 has no NVLink, others have: its traffic takes PCIe",
                          "GPU3 has no NVLink, others have: its traffic takes PCIe"));
}

TEST(nvidia_smi, a_paste_without_its_last_rows_is_completed) {
  const std::string text = pairs;
  const auto t = read_text(text.substr(0, text.find("mlx5_0  PIX")));
  EXPECT_EQ(counts_of(t), counts_of(read_text(pairs)));
  EXPECT_THAT(t.said.missing, Contains("f: 1 row of the matrix: the paste is cut short; the other "
                                       "rows tell the same"));
}

constexpr const char* no_nvlink =
    "no NVLink in the matrix: true of GPUs that have none, but `topo -mp` hides it; `topo -m` "
    "shows it";

TEST(nvidia_smi, warns_where_nvlink_may_be_hidden) {
  const std::string matrix = "GPU0 GPU1 CPU Affinity\nGPU0 X SYS 0-7\nGPU1 SYS X 8-15\n";
  EXPECT_THAT(read_text(matrix).said.warnings, ElementsAre(no_nvlink));
  EXPECT_THAT(read_text("$ nvidia-smi topo -mp\n" + matrix).said.warnings,
              ElementsAre("no NVLink in the matrix: `topo -mp` hides it; `topo -m` shows it"));
  EXPECT_THAT(read_text(matrix, {.device = "h100-sxm5"}).said.warnings,
              ElementsAre("no NVLink in the matrix: H100 SXM5 has it, `topo -mp` hides it; `topo "
                          "-m` shows it"));
  EXPECT_THAT(read_text(matrix, {.device = "l20"}).said.warnings, IsEmpty());
  EXPECT_THAT(read_text("GPU0 CPU Affinity\nGPU0 X 0-7\n").said.warnings, IsEmpty());
}

TEST(nvidia_smi, warns_of_a_second_matrix) {
  EXPECT_THAT(read_text(std::string(pairs) + pairs).said.warnings,
              Contains("another matrix follows the first: not read; a file a node makes several "
                       "nodes"));
}

// --- Pastes with more or less around the matrix. ----------------------------------------------

topology read_paste(const std::string& name) {
  return read_topology(read_source("tests/formats/data/nvidia-smi/" + name), {});
}

TEST(nvidia_smi_around, escapes_of_an_underlined_header) {
  const auto t = read_paste("ansi.txt");
  // Both under one host bridge, in one domain.
  EXPECT_EQ(counts_of(t), (counts{2, 0, 2, 0, 3}));
  EXPECT_THAT(rates(t, link_kind::nvlink), IsEmpty());
  EXPECT_THAT(t.said.warnings, ElementsAre(no_nvlink));
}

TEST(nvidia_smi_around, titles) {
  const auto nics = read_paste("smi_76nics.txt");
  EXPECT_EQ(counts_of(nics), (counts{2, 2, 3, 0, 4 + 2 + 1}));
  EXPECT_THAT(rates(nics, "gpu0", "gpu1"), ElementsAre(450));
  const auto trimmed = read_paste("smi_trimmed.txt");
  EXPECT_EQ(counts_of(trimmed), (counts{2, 1, 2, 0, 2 + 2 + 1}));
  EXPECT_THAT(rates(trimmed, "gpu0", "gpu1"), ElementsAre(450));
}

TEST(nvidia_smi_around, markdown) {
  const auto t = read_paste("smi_markdown.txt");
  // Two host bridges of two GPUs and one GPU alone; all CPUs in one affinity, so nothing tells the
  // domains apart but SYS.
  EXPECT_EQ(t.count(part_kind::device), 6u);
  EXPECT_THAT(neighbours(t, "bridge0"), ElementsAre("cpu0", "gpu0", "gpu1"));
  EXPECT_THAT(neighbours(t, "bridge1"), ElementsAre("cpu2", "gpu3", "gpu4"));
}

TEST(nvidia_smi_around, glued_names) {
  const auto t = read_paste("smi_nic_glued.txt");
  EXPECT_EQ(counts_of(t), (counts{2, 3, 3, 0, 4 + 3 + 1}));
  EXPECT_THAT(neighbours(t, "nic2"), ElementsAre("cpu0"));
  const auto cpu = read_text(
      "GPU0    GPU1    NIC0    NIC1CPU Affinity     NUMA Affinity\n"
      "GPU0     X      NV18    PIX     NODE    0-15    0\n"
      "GPU1    NV18     X      NODE    PIX     0-15    0\n"
      "NIC0    PIX     NODE     X      NODE\n"
      "NIC1    NODE    PIX     NODE     X\n");
  EXPECT_EQ(counts_of(cpu), (counts{2, 2, 3, 0, 4 + 2 + 1}));
}

TEST(nvidia_smi_around, topo_mp_hides_nvlink) {
  const auto t = read_paste("smi_mp.txt");
  EXPECT_EQ(counts_of(t), (counts{4, 2, 2 + 2, 0, 4 + 2 + 2 + 1}));
  EXPECT_THAT(t.said.warnings, ElementsAre(no_nvlink));
}

// --- Pastes of others. -----------------------------------------------------------------------

TEST(nvidia_smi_pastes, nvswitch) {
  READ_SHARED_OR_SKIP(h100, "nvidia_smi_topo/h100_8gpu_nvswitch_plain.txt", {});
  // Two domains of four GPUs, 18 NVLinks to a switch each.
  EXPECT_EQ(counts_of(h100), (counts{8, 0, 2 + 1, 0, 8 + 1 + 8}));
  EXPECT_EQ(h100.device, "h100-sxm5");
  EXPECT_THAT(rates(h100, link_kind::nvlink), AllOf(SizeIs(8), Each(450)));
  READ_SHARED_OR_SKIP(a100, "nvidia_smi_topo/a100_8gpu_nvswitch_plain.txt", {});
  EXPECT_EQ(counts_of(a100), counts_of(h100));
  EXPECT_THAT(rates(a100, link_kind::nvlink), AllOf(SizeIs(8), Each(300)));
}

TEST(nvidia_smi_pastes, nine_nics_in_reversed_order) {
  READ_SHARED_OR_SKIP(t, "nvidia_smi_topo/h100_8gpu_9nic_tabs.txt", {});
  // Eight switches of a GPU and a NIC, two domains, and NIC0 in one of its own.
  EXPECT_EQ(counts_of(t), (counts{8, 9, 8 + 3 + 1, 0, 2 * 8 + 8 + 1 + 3 + 8}));
  EXPECT_EQ(neighbours(t, "nic8")[0], neighbours(t, "gpu0")[1]);
  EXPECT_EQ(neighbours(t, "nic1")[0], neighbours(t, "gpu7")[1]);
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 50e9);
}

TEST(nvidia_smi_pastes, four_h100_directly_linked) {
  READ_SHARED_OR_SKIP(t, "nvidia_smi_topo/h100_4gpu_nv6_4nic.txt", {});
  // 6 links to each of three peers are a GPU's 18: no switch. A domain and a PCIe switch each.
  EXPECT_EQ(counts_of(t), (counts{4, 4, 4 + 4, 0, 2 * 4 + 4 + 6 + 6}));
  EXPECT_THAT(rates(t, link_kind::nvlink), AllOf(SizeIs(6), Each(150)));
  EXPECT_THAT(rates(t, "nic2", "pcie2"), ElementsAre(DoubleNear(gen5, 1e-3)));
}

TEST(nvidia_smi_pastes, container_without_affinity) {
  READ_SHARED_OR_SKIP(t, "nvidia_smi_topo/a100_2gpu_8nic_container.txt", {});
  // Four switches of two NICs; above that of NIC6 and NIC7 one with both GPUs. Four domains.
  EXPECT_EQ(counts_of(t), (counts{2, 8, 5 + 4, 0, 8 + 3 + 4 + 6 + 1}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(300));
  EXPECT_THAT(
      t.said.warnings,
      ElementsAre(HasSubstr("the GPUs are taken for A100 SXM4 40 GB, but 12 NVLinks a GPU, "),
                  HasSubstr("NUMA hidden")));
}

TEST(nvidia_smi_pastes, v100_all_to_all_with_tabs) {
  READ_SHARED_OR_SKIP(t, "nvidia_smi_topo/v100_4gpu_c4140_tabs.txt", {});
  EXPECT_EQ(counts_of(t), (counts{4, 1, 1, 0, 5 + 6}));
  EXPECT_THAT(rates(t, link_kind::nvlink), AllOf(SizeIs(6), Each(50)));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 12.5e9);  // a V100's slot has 8 GT/s
}

TEST(nvidia_smi_pastes, pcie_alone) {
  READ_SHARED_OR_SKIP(t, "nvidia_smi_topo/pcie_only_8gpu_tabs.txt", {});
  // Host bridges of GPUs 1 2, 3 4 and 6 7; domains of 6 and 2 GPUs.
  EXPECT_EQ(counts_of(t), (counts{8, 0, 3 + 2, 0, 6 + 4 + 1 + 1}));
  EXPECT_THAT(neighbours(t, "cpu0"), ElementsAre("bridge0", "bridge1", "cpu1", "gpu0", "gpu5"));
  READ_SHARED_OR_SKIP(t4, "nvidia_smi_topo/t4_4gpu_asymmetric_numa.txt", {});
  EXPECT_EQ(counts_of(t4), (counts{4, 0, 2, 0, 4 + 1}));
  EXPECT_THAT(neighbours(t4, "cpu0"), ElementsAre("cpu1", "gpu0"));
}

TEST(nvidia_smi_pastes, two_consumer_gpus) {
  READ_SHARED_OR_SKIP(nv2, "nvidia_smi_topo/consumer_2gpu_nv2.txt", {});
  EXPECT_EQ(counts_of(nv2), (counts{2, 0, 1, 0, 3}));
  EXPECT_THAT(rates(nv2, "gpu0", "gpu1"), ElementsAre(50));
  READ_SHARED_OR_SKIP(phb, "nvidia_smi_topo/consumer_2gpu_phb.txt", {});
  EXPECT_EQ(counts_of(phb), (counts{2, 0, 2, 0, 3}));
  EXPECT_THAT(rates(phb, link_kind::nvlink), IsEmpty());
}

}  // namespace nvidia_smi_test
}  // namespace attnsim::formats
