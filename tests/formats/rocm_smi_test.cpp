#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace rocm_smi_test {

using testing::AllOf;
using testing::Contains;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(rocm_smi, reads_direct_links) {
  const auto t = read_topology(read_source("tests/formats/data/rocm-smi/four-gpus.txt"), {});
  // All in NUMA node 0, which the file tells of GPU0 alone; a link between each of six pairs.
  EXPECT_EQ(counts_of(t), (counts{4, 0, 1, 0, 4 + 6}));
  EXPECT_THAT(rates(t, link_kind::nvlink), AllOf(SizeIs(6), Each(64)));
  EXPECT_THAT(t.said.read, ElementsAre("four-gpus.txt: 4 GPUs, 6 XGMI links, 1 NUMA node"));
  EXPECT_THAT(
      t.said.warnings,
      ElementsAre(AllOf(HasSubstr("the GPUs are taken for MI300X, but XGMI fits MI300X, MI325X, "),
                        HasSubstr(": add the output of `rocm-smi --showproductname`"))));
}

/// Tables of types and hops; `other` is what GPU0 and GPU2 have.
std::string three_gpus(const std::string& type, const std::string& hops) {
  return "= Hops between two GPUs =\n=== Hops between two GPUs ===\n       GPU0 GPU1 GPU2\nGPU0 0 "
         "1 " +
         hops + "\nGPU1 1 0 1\nGPU2 " + hops +
         " 1 0\n\n=== Link Type between two GPUs ===\n       GPU0 GPU1 GPU2\nGPU0 0 XGMI " + type +
         "\nGPU1 XGMI 0 XGMI\nGPU2 " + type +
         " XGMI 0\n=== Numa Nodes ===\nGPU[0]\t\t: (Topology) Numa Node: 0\n"
         "GPU[0]\t\t: (Topology) Numa Affinity: 0\nGPU[2]\t\t: (Topology) Numa Node: 1\n";
}

TEST(rocm_smi, takes_rates_from_the_cards_name) {
  const auto t = read_text("GPU[0] : Card Series: AMD Instinct MI250X\n" + three_gpus("PCIE", "2"));
  EXPECT_EQ(counts_of(t), (counts{3, 0, 2, 0, 3 + 1 + 2}));
  EXPECT_THAT(neighbours(t, "cpu1"), ElementsAre("cpu0", "gpu2"));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(50));
  EXPECT_THAT(rates(t, "gpu0", "gpu2"), IsEmpty());
  EXPECT_THAT(t.said.assumed, Contains("f: the GPUs are MI250X, by the name MI250X"));
  EXPECT_THAT(t.said.warnings, IsEmpty());
  const auto gfx = read_text("GFX Version: gfx908\n" + three_gpus("XGMI", "1"));
  EXPECT_THAT(rates(gfx, link_kind::nvlink), AllOf(SizeIs(3), Each(46)));
}

TEST(rocm_smi, warns_of_pairs_that_meet_over_others) {
  const auto t = read_text("MI250X\n" + three_gpus("XGMI", "2"));
  EXPECT_THAT(rates(t, "gpu0", "gpu2"), IsEmpty());
  EXPECT_THAT(
      t.said.warnings,
      ElementsAre("1 pair of GPUs reach each other by XGMI over others: their traffic takes "
                  "one other GPU, else PCIe"));
}

TEST(rocm_smi, refuses_tables_that_are_cut_or_do_not_fit) {
  const std::string title = "=== Link Type between two GPUs ===\n";
  EXPECT_ERROR(read_text("=== Weight between two GPUs ===\n", {}, "rocm-smi"), input_error,
               "f:1: expected the table 'Link Type between two GPUs'");
  EXPECT_ERROR(read_text(title), input_error,
               "f:1: expected a line of column names below: GPU0 GPU1 ...");
  EXPECT_ERROR(read_text(title + "GPU0 GPU1\nGPU0 0 XGMI\n"), input_error,
               "f:3: the table ends after 1 of 2 rows: row GPU1 is missing");
  EXPECT_ERROR(read_text(title + "GPU0 GPU1\nGPU0 0\nGPU1 XGMI 0\n"), input_error,
               "f:3: row GPU0: expected 2 cells, found 1");
  EXPECT_ERROR(read_text(title + "GPU0 GPU1\nGPU0 0 CXL\nGPU1 CXL 0\n"), input_error,
               "f: GPU0 to GPU1: 'CXL': expected XGMI or PCIE");
  EXPECT_ERROR(read_text(title + "GPU0 GPU1\nGPU0 0 XGMI\nGPU1 PCIE 0\n"), input_error,
               "f: GPU0 to GPU1 and back differ: expected a symmetric table");
  EXPECT_ERROR(read_text(three_gpus("PCIE", "2") + "GPU[7] : (Topology) Numa Node: 0\n"),
               input_error, "f:17: GPU: 'GPU[7]': expected GPU[0] to GPU[2]");
}

}  // namespace rocm_smi_test
}  // namespace attnsim::formats
