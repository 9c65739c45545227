// Logs of NVIDIA's nccl-tests, and tables of such figures.
//
// A log's table has one of three layouts, by version (e is "error" in old ones, "#wrong" in new):
//   size count type redop root  time algbw busbw e  time algbw busbw e     out of place, in place
//   size count type redop       ...
//   size count type             ...
// Lines may carry what mpirun puts before them ("0: ", "[1,0]<stdout>:"). Cells may be N/A. Rows of size 0, which
// all-gather and its like print for sizes too small for all ranks, are left out: their time is of nothing.
// The operation stands in the log ("op=all_gather", "all_gather_perf", also in a line that is the command itself) or in the
// file's name; ranks and nodes are counted under "# Using devices".
//
// A CSV has a header with at least op, ranks, size_bytes and time_us; lines that begin with '#' are comments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attnsim {

struct nccl_tests_timing {
  double time_us = 0;
  double algorithm_bandwidth = 0;  ///< GB/s
  double bus_bandwidth = 0;        ///< GB/s
};

struct nccl_tests_row {
  int line = 0;
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  std::string type, reduction;
  nccl_tests_timing out_of_place;
  std::optional<nccl_tests_timing> in_place;
};

struct nccl_tests_log {
  std::string operation;  ///< all_reduce, all_gather, reduce_scatter, alltoall, sendrecv, ...
  int ranks = 0;          ///< 0: the log does not say
  int nodes = 0;
  std::vector<nccl_tests_row> rows;
};

/// A log or, where it ends in .csv, a table. Throws input_error naming file, line, column and value: cells that are no
/// numbers, rows of another number of cells, no rows, wrong results (#wrong above 0).
nccl_tests_log read_nccl_tests(const std::string& path);
/// The same of a text that is read already.
nccl_tests_log read_nccl_tests(const std::string& name, const std::string& text);

}  // namespace attnsim
