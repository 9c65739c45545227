// Files of other programs that describe machines, read to one form (formats/topology.hpp). A format
// is one file of this folder and one line of the table in formats.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/source.hpp"
#include "formats/topology.hpp"

namespace attnsim::formats {

/// What the user says about the machine; empty or zero: not given.
struct settings {
  std::string device;  ///< a shipped profile
  bandwidth nic_rate;  ///< of every NIC and of cables whose rate the file does not tell
  int devices_per_host = 0;
};

struct format {
  std::string_view name;
  std::string_view what;                             ///< one line for help
  bool (*detect)(std::string_view text);             ///< cheap: looks at the beginning
  topology (*read)(const source&, const settings&);  ///< throws input_error
};

std::span<const format> known_formats();

/// Reads with the format called `as`, or the one that the text shows. Throws input_error.
topology read_topology(const source&, const settings&, const std::string& as = "");

topology read_nccl_topology(const source&, const settings&);
topology read_nccl_graph(const source&, const settings&);
topology read_nvidia_smi(const source&, const settings&);
topology read_slurm(const source&, const settings&);
topology read_topograph(const source&, const settings&);
topology read_ibnetdiscover(const source&, const settings&);
topology read_astra_sim(const source&, const settings&);
topology read_htsim(const source&, const settings&);
topology read_simgrid(const source&, const settings&);
topology read_taccl(const source&, const settings&);
topology read_graphml(const source&, const settings&);
topology read_own(const source&, const settings&);

bool is_slurm(std::string_view text);
bool is_ibnetdiscover(std::string_view text);

}  // namespace attnsim::formats
