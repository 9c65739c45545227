// FILE or FILE@CLUSTER, as calibrate and compare take their inputs: what was measured, and on which cluster.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ask/part_errors.hpp"
#include "calibrate/measurements.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim::cli {

struct located_file {
  std::string file;
  std::string cluster;  ///< a shipped name or a file; empty: not given
};

located_file split_at_cluster(const std::string& text);

/// A measured point, its prediction, and the interval of the cluster's profile.
compared_point compared(const measurement&, const cluster&);

/// Clusters that are read once each.
class cluster_shelf {
 public:
  /// Null for an empty name.
  const cluster* find(const std::string& name, const cluster_overrides& = {});

 private:
  std::map<std::string, cluster> read_;
};

}  // namespace attnsim::cli
