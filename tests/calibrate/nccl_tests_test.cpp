#include "calibrate/nccl_tests.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "model/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/shared_files.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim {
namespace nccl_tests_test {

const std::string new_layout =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  "
    "algbw   busbw #wrong\n";

class nccl_tests : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  temporary_folder folder_;
};

TEST_F(nccl_tests, rows_operation_ranks_and_nodes) {
  const auto log = read_nccl_tests(write(
      "a.log",
      "0: # nThread 1 nGpus 1 minBytes 8; build/all_gather_perf -b 8\n"
      "0: #  Rank  0 Group  0 Pid   1000 on     node1 device  0 [0x10] NVIDIA H100\n"
      "0: #  Rank  1 Group  0 Pid   1001 on     node2 device  0 [0x10] NVIDIA H100\n" +
          new_layout +
          "0:   0   0  float  none  -1   9.10  0.00  0.00   0   9.00  0.00  0.00  0\n"
          "[1,0]<stdout>:  1024  256  float  none  -1   20.5  0.05  0.02   0   N/A  N/A  N/A  N/A\n"
          "# Out of bounds values : 0 OK\n"));
  EXPECT_EQ(log.operation, "all_gather");
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.nodes, 2);
  ASSERT_EQ(log.rows.size(), 1u);
  EXPECT_EQ(log.rows[0].bytes, 1024);
  EXPECT_EQ(log.rows[0].count, 256);
  EXPECT_EQ(log.rows[0].line, 6);
  EXPECT_EQ(log.rows[0].out_of_place.time_us, 20.5);
  EXPECT_EQ(log.rows[0].out_of_place.bus_bandwidth, 0.02);
  EXPECT_FALSE(log.rows[0].in_place);
}

TEST_F(nccl_tests, layouts_of_older_versions) {
  const auto without_root = read_nccl_tests(
      write("reduce_scatter.log",
            "# size count type redop time algbw busbw error time algbw busbw error\n"
            "  64 16 float sum 1.5 2.5 3.5 0e+00 4.5 5.5 6.5 1e-07\n"));
  EXPECT_EQ(without_root.operation, "reduce_scatter");
  EXPECT_EQ(without_root.rows.at(0).in_place->bus_bandwidth, 6.5);
  const auto without_both =
      read_nccl_tests(write("allgather.txt",
                            "# size count type time algbw busbw error time algbw busbw error\n"
                            "  64 16 float 1.5 2.5 3.5 0e+00 4.5 5.5 6.5 0e+00\n"));
  EXPECT_EQ(without_both.rows.at(0).out_of_place.time_us, 1.5);
  EXPECT_EQ(without_both.rows.at(0).reduction, "");
}

TEST_F(nccl_tests, a_first_line_that_is_the_command_tells_the_operation) {
  const auto log = read_nccl_tests(
      "run.txt", "$ mpirun -np 16 -N 8 ./build/all_reduce_perf -b 8 --op=sum -o /tmp/x\n" +
                     new_layout + "64 16 float sum -1 1.5 2.5 3.5 0 4.5 5.5 6.5 0\n");
  EXPECT_EQ(log.operation, "all_reduce");
  EXPECT_EQ(log.rows.size(), 1u);
  EXPECT_EQ(log.rows[0].line, 3);
}

TEST_F(nccl_tests, lines_end_as_other_systems_end_them) {
  const auto log = read_nccl_tests(
      write("sendrecv.log",
            "\xef\xbb\xbf" + new_layout + "64 16 float sum -1 1.5 2.5 3.5 0 4.5 5.5 6.5 0\r\n"));
  EXPECT_EQ(log.rows.at(0).in_place->bus_bandwidth, 6.5);
}

TEST_F(nccl_tests, errors_name_line_column_and_value) {
  const auto broken = [&](const std::string& row) {
    return write("sendrecv.log", new_layout + row + "\n");
  };
  const auto file = folder_.file("sendrecv.log");
  EXPECT_ERROR(read_nccl_tests(broken("64 16 float sum -1 1.5 2.5 3.5 0 4.5 5.5 6.5")), input_error,
               file +
                   ":2: row: '64 16 float sum -1 1.5 2.5 3.5 0 4.5 5.5 6.5': expected 13 cells, "
                   "got 12");
  EXPECT_ERROR(read_nccl_tests(broken("64 16 float sum -1 1.5x 2.5 3.5 0 4.5 5.5 6.5 0")),
               input_error, file + ":2: time: '1.5x': expected a number");
  EXPECT_ERROR(read_nccl_tests(broken("64 16 float sum -1 1.5 2.5 3.5 7 4.5 5.5 6.5 0")),
               input_error,
               file + ":2: #wrong: '7': expected 0: the results of this run are wrong");
  EXPECT_ERROR(read_nccl_tests(write("sendrecv.log", "64 16 float sum -1 1 2 3 0 4 5 6 0\n")),
               input_error,
               file +
                   ":1: row: '64 16 float sum -1 1 2 3 0 4 5 6 0': expected '# size count type "
                   "...' before the first row");
  EXPECT_ERROR(read_nccl_tests(write("sendrecv.log", new_layout)), input_error,
               file + ": 'no rows': expected a table of nccl-tests");
  EXPECT_ERROR(
      read_nccl_tests(write("x.csv", "op,ranks,size_bytes\nsendrecv,2,64\n")), input_error,
      folder_.file("x.csv") +
          ":1: header: 'time_us': missing; expected at least op, ranks, size_bytes, time_us");
}

/// Each log of the collection against its CSV, which was made by hand from the same text.
TEST_F(nccl_tests, logs_give_the_figures_of_their_tables) {
  namespace fs = std::filesystem;
  const fs::path logs = "../shared/inputs/nccl_tests_logs";
  NEEDS_SHARED(logs);
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(logs)) {
    const auto name = entry.path().stem().string();
    const fs::path table = logs / "../../measured/nccl_tests" / (name + ".csv");
    if (entry.path().extension() != ".log" || !fs::exists(table)) continue;
    SCOPED_TRACE(name);
    const auto log = read_nccl_tests(entry.path().string());
    const auto figures = read_nccl_tests(table.string());
    EXPECT_EQ(log.operation, figures.operation);
    if (log.ranks > 0) {
      EXPECT_EQ(log.ranks, figures.ranks);
    }
    ASSERT_EQ(log.rows.size(), figures.rows.size());
    for (std::size_t i = 0; i < log.rows.size(); ++i) {
      const auto &a = log.rows[i], &b = figures.rows[i];
      EXPECT_EQ(a.bytes, b.bytes);
      EXPECT_EQ(a.count, b.count);
      EXPECT_EQ(a.out_of_place.time_us, b.out_of_place.time_us);
      EXPECT_EQ(a.out_of_place.algorithm_bandwidth, b.out_of_place.algorithm_bandwidth);
      EXPECT_EQ(a.out_of_place.bus_bandwidth, b.out_of_place.bus_bandwidth);
      ASSERT_EQ(a.in_place.has_value(), b.in_place.has_value());
      if (a.in_place) {
        EXPECT_EQ(a.in_place->time_us, b.in_place->time_us);
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, 14);
}

}  // namespace nccl_tests_test
}  // namespace attnsim
