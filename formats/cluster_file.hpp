// The cluster file (model/cluster/cluster.hpp) of a machine that was read from other files.
#pragma once

#include <cstdint>
#include <string>

#include "formats/combine.hpp"

namespace attnsim::formats {

struct cluster_file_settings {
  std::string name;        ///< of the cluster
  std::string fabric;      ///< YAML of `fabric:`; empty: as read, else a star
  std::int64_t nodes = 0;  ///< how many; 0: as read
};

struct cluster_file {
  std::string
      text;  ///< YAML under a comment of what was read, assumed and missing, with the warnings
  std::vector<std::string> warnings;
};

/// Throws input_error when it makes no cluster, such as machines that do not reach each other.
cluster_file write_cluster_file(const machine&, const cluster_file_settings&);

}  // namespace attnsim::formats
