// The matrix that `nvidia-smi topo -m` prints, wherever in a text it stands: after a prompt, a title or other commands'
// output, in a markdown fence or table, before a legend that may be cut. A line of column names begins with GPU0, then rows
// follow in the same order. Behind the cells stand affinities, where the program knew them.
//
//             GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
//     GPU0     X      NV18    PIX     0-31            0               N/A
//
// Cells and names that lost the blanks between them are split where that is unambiguous (SYSSYS, NIC1CPU Affinity).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/source.hpp"

namespace attnsim::formats {

/// A way over PCIe, from the closest; or NVLink.
enum class smi_relation { self, pix, pxb, phb, node, system, nvlink, unknown };

struct smi_cell {
  smi_relation how = smi_relation::unknown;
  int nvlinks = 0;
};

struct smi_row {
  std::string name;
  std::vector<smi_cell> cells;  ///< one a column
  std::string affinity;         ///< CPUs; empty: not known
  bool numa_known = true;
};

struct smi_matrix {
  std::vector<smi_row> rows;      ///< one a column, GPUs first or not, as printed
  std::size_t rows_missing = 0;   ///< at the end: a paste cut short; told by the columns
  std::size_t pairs_unknown = 0;  ///< of the missing rows
  bool another_follows = false;   ///< a second matrix
  std::optional<bool> grace;      ///< whether GPUs' memory is a NUMA node; nothing: no such column
  bool without_nvlink = false;    ///< the text names the command `topo -mp`
};

/// Whether a text has a line of column names.
bool has_smi_matrix(std::string_view text);

/// The first matrix. Throws input_error that names line and cell.
smi_matrix read_smi_matrix(const source&);

}  // namespace attnsim::formats
