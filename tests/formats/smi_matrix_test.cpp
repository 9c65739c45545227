#include "formats/smi_matrix.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"

namespace attnsim::formats {
namespace smi_matrix_test {

using testing::ElementsAre;

smi_matrix read(const std::string& text) {
  return read_smi_matrix({"f", text});
}

std::vector<std::string> names(const smi_matrix& m) {
  std::vector<std::string> names;
  for (const auto& row : m.rows) names.push_back(row.name);
  return names;
}

constexpr const char* plain =
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\tPIX\t0-31\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\t0-31\t0\t\tN/A\n"
    "NIC0\tPIX\tNODE\t X\n";

void expect_plain(const smi_matrix& m) {
  ASSERT_THAT(names(m), ElementsAre("GPU0", "GPU1", "NIC0"));
  EXPECT_EQ(m.rows[0].cells[0].how, smi_relation::self);
  EXPECT_EQ(m.rows[0].cells[1].how, smi_relation::nvlink);
  EXPECT_EQ(m.rows[0].cells[1].nvlinks, 18);
  EXPECT_EQ(m.rows[2].cells[0].how, smi_relation::pix);
  EXPECT_EQ(m.rows[2].cells[1].how, smi_relation::node);
  EXPECT_EQ(m.rows[1].affinity, "0-31");
  EXPECT_TRUE(m.rows[1].numa_known);
  EXPECT_EQ(m.grace, false);
  EXPECT_EQ(m.rows_missing, 0u);
}

TEST(smi_matrix, is_read_with_affinities) {
  expect_plain(read(plain));
}

TEST(smi_matrix, is_found_among_other_lines) {
  for (const std::string before :
       {"$ nvidia-smi topo -m\n", "GPU Topology:\n", "76 NICs found in the topology\n", "```text\n",
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\nall of GPU0 and GPU1:\n\n"}) {
    for (const std::string after :
         {"```\n", "\nLegend:\n\n  X    = Self\n", "$ \n", "  SYS  = Co"}) {
      SCOPED_TRACE(before + after);
      expect_plain(read(before + plain + after));
      EXPECT_TRUE(has_smi_matrix(before + plain + after));
    }
  }
}

TEST(smi_matrix, is_read_from_tables_quotes_and_prefixed_lines) {
  expect_plain(read(
      "| | GPU0 | GPU1 | NIC0 | CPU Affinity | NUMA Affinity | GPU NUMA ID |\n"
      "|---|:-:|---|---|---|---|---|\n"
      "| GPU0 | X | NV18 | PIX | 0-31 | 0 | N/A |\n| GPU1 | NV18 | X | NODE | 0-31 | 0 | N/A |\n"
      "| NIC0 | PIX | NODE | X | | | |\n"));
  for (const std::string prefix : {"> ", "node1: ", "[1,0]<stdout>:\t"}) {
    std::string text;
    for (const auto& line : lines_of(plain)) text += prefix + std::string(line.text) + "\n";
    expect_plain(read(text));
  }
}

TEST(smi_matrix, splits_what_is_glued) {
  expect_plain(
      read("GPU0GPU1 NIC0CPU Affinity NUMA Affinity GPU NUMA ID\n"
           "GPU0X NV18PIX 0-31 0 N/A\nGPU1 NV18X NODE0-31 0 N/A\nNIC0 PIXNODEX\n"));
  EXPECT_THAT(names(read("GPU0 mlx5_0mlx5_bond_0\nGPU0 X SYSSYS\nmlx5_0 SYS XPIX\n"
                         "mlx5_bond_0 SYS PIX X\n")),
              ElementsAre("GPU0", "mlx5_0", "mlx5_bond_0"));
}

TEST(smi_matrix, refuses_glue_that_has_two_readings) {
  EXPECT_ERROR(read("GPU0 GPU1hfi1_0\n"), input_error,
               "f:1: column: 'GPU1hfi1_0': expected blanks between the names of columns");
  EXPECT_ERROR(read("GPU0 GPU1\nGPU0 X NV180-31\n"), input_error,
               "f:2: GPU0: 'NV180-31': expected X, NV#, PIX, PXB, PHB, NODE or SYS");
  EXPECT_ERROR(read("GPU0 GPU1 NIC0\nGPU0 X NV18?X\n"), input_error,
               "f:2: GPU0: 'NV18?X': expected X, NV#, PIX, PXB, PHB, NODE or SYS, with blanks "
               "between");
}

TEST(smi_matrix, tells_grace_by_the_gpus_numa_nodes) {
  const auto m = read(
      "GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
      "GPU0 X NV18 0-71 0,2-17 2\nGPU1 NV18 X 72-143 1,18-33 10\n");
  EXPECT_EQ(m.grace, true);
  EXPECT_EQ(read("GPU0 CPU Affinity\nGPU0 X 0-7\n").grace, std::nullopt);
}

TEST(smi_matrix, knows_its_command_and_that_another_follows) {
  const std::string one = plain;
  EXPECT_FALSE(read(one).another_follows);
  EXPECT_TRUE(read(one + one).another_follows);
  EXPECT_FALSE(read("$ nvidia-smi topo -m\n" + one).without_nvlink);
  EXPECT_TRUE(read("$ nvidia-smi topo -mp\n" + one).without_nvlink);
}

TEST(smi_matrix, other_names_of_nics_and_levels) {
  const auto m = read("GPU0 rocep13s0 bnxt_re1\nGPU0 X SOC PHB\nrocep13s0 SOC X SYS\n");
  EXPECT_THAT(names(m), ElementsAre("GPU0", "rocep13s0", "bnxt_re1"));
  EXPECT_EQ(m.rows[0].cells[1].how, smi_relation::system);
  EXPECT_EQ(m.rows_missing, 1u);
  EXPECT_EQ(m.pairs_unknown, 0u);
}

TEST(smi_matrix, is_not_seen_in_other_texts) {
  for (const std::string text :
       {"", "GPU0 X NV18\n", "GPU0: NVIDIA H100\n", "GPU0 and GPU1 are near\n",
        "the cards are GPU0 GPU1", "NIC0 NIC1\n"}) {
    EXPECT_FALSE(has_smi_matrix(text)) << text;
    EXPECT_ERROR(read(text), input_error, "f:1: expected a line of column names: GPU0 GPU1 ...");
  }
}

TEST(smi_matrix, refuses_rows_that_do_not_fit) {
  EXPECT_ERROR(read("GPU0 GPU0\n"), input_error, "f:1: expected column names that differ");
  EXPECT_ERROR(read("GPU0 GPU1\nGPU1 X NV1\n"), input_error, "f:2: row: 'GPU1': expected GPU0");
  EXPECT_ERROR(read("GPU0 GPU1\nGPU0 X NVX\nGPU1 NV1 X\n"), input_error,
               "f:2: GPU0: 'NVX': expected X, NV#, PIX, PXB, PHB, NODE or SYS");
  EXPECT_ERROR(read("GPU0 GPU1\nGPU0 X\nGPU1 NV1 X\n"), input_error,
               "f:2: row GPU0: expected 2 cells, found 1");
  EXPECT_ERROR(read("GPU0 GPU1 GPU2\nGPU0 X NV1 NV1\n```\n"), input_error,
               "f:2: the matrix ends after 1 of 3 rows: row GPU1 is missing");
  EXPECT_ERROR(read("GPU0 GPU1\nGPU0 X NV1\nGPU1 SYS X\n"), input_error,
               "f: GPU0 to GPU1 and back differ: expected a symmetric matrix");
}

}  // namespace smi_matrix_test
}  // namespace attnsim::formats
