// Files of other programs that describe machines, read to one form (formats/topology.hpp). An importer is one file of
// importers/ and one line of importers/table.hpp; it describes itself, and recognition, help and docs/inputs.md are made
// of these descriptions.
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

struct importer {
  std::string_view name;
  std::string_view what;     ///< whose files, on one line
  std::string_view reads;    ///< what is taken from them
  std::string_view assumes;  ///< what they leave out, and what stands in for it
  std::string_view refuses;  ///< what is an error, besides text that breaks the format's grammar
  bool (*recognises)(std::string_view text);         ///< cheap: looks at the beginning
  topology (*read)(const source&, const settings&);  ///< throws input_error
  bool reads_prompts =
      false;  ///< of shells, whose commands say what is shown; else they are left out
};

/// All of the project, in the order in which they look at a text.
std::span<const importer> known_importers();

/// "nccl-topology, nccl-graph, ...".
std::string names_of(std::span<const importer>);

/// Reads with the importer called `as`, or the first that recognises the text. A text with a markdown fence (```) is what
/// stands in the first one, without shells' prompts. Throws input_error.
topology read_topology(const source&, const settings&, const std::string& as = "",
                       std::span<const importer> = known_importers());

}  // namespace attnsim::formats
