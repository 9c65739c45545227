// FILE or FILE@CLUSTER, as calibrate and compare take their inputs: what was measured, and on which cluster.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "calibrate/calibration.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim::cli {

struct located_file {
  std::string file;
  std::string cluster;  ///< a shipped name or a file; empty: not given
};

located_file split_at_cluster(const std::string& text);

/// Clusters that are read once each.
class cluster_shelf {
 public:
  /// Null for an empty name.
  const cluster* find(const std::string& name, const cluster_overrides& = {});

 private:
  std::map<std::string, cluster> read_;
};

}  // namespace attnsim::cli
