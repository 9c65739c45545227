// Which card the GPUs of a file are, by what the file tells of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/hardware.hpp"
#include "formats/importer.hpp"

namespace attnsim::formats {

/// Zero, empty: not told.
struct card_hints {
  std::int64_t pci_id = 0;
  std::int64_t sm = 0;        ///< NVIDIA's compute capability x 10
  std::string gfx;            ///< AMD's, such as "gfx942"
  int links = 0;              ///< NVLinks or XGMI links of a GPU
  double pcie = 0;            ///< GT/s a lane
  std::optional<bool> grace;  ///< whether a GPU's memory is a NUMA node, as beside a Grace CPU
};

/// The card that the user names; else of this PCI id; else whose name, or a machine's that has it, stands in the text or in
/// the file's name; else the first that fits the other hints, with a doubt where several do; else
/// hardware's `unknown`. The topology gets the profile, the doubt and notes.
const known_device& find_card(const source&, const settings&, const card_hints&, topology&);

}  // namespace attnsim::formats
