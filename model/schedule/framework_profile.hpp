// A framework profile: how a framework runs a schedule where it has a choice. A file of topologies/frameworks, each fact with
// its source:
//
//   name: example
//   source: where the facts are from
//   host: pytorch                      # optional: the host profile of its launches
//   merges: unfused                    # optional, as all that follows: as the algorithm has it (model/schedule/strategy.hpp)
//   partials: fp32                     # partial outputs on the wire
//   gradients: fp32                    # dK, dV on the wire
//   launch_order: compute-first        # model/schedule/launch_order.hpp
//   copies: {joined: first, gathered: true, scattered: true, received: true, batched: true, returned: true, separate: true, rate: 0.4}
//                                      # model/schedule/framework_copies.hpp
//   repeats_keys: true                 # K and V are copied for each query head before attention, which exchanges them so
//   waits: [exchange, all_gather, reduce_scatter, all_to_all]   # calls at whose end the host goes on, not before
//
// Which schedules it has at all, and what to write into its settings: ask/frameworks.hpp, under the same name.
#pragma once

#include <string>
#include <vector>

#include "model/schedule/strategy.hpp"

namespace attnsim {

class config_node;

struct framework_profile {
  std::string name;
  std::string source;
  std::string host;  ///< empty: launches take no time
  merge_kind merges = merge_kind::fused;
  precision partials = precision::storage;
  precision gradients = precision::storage;
  launch_order launch = launch_order::communication_first;
  framework_copies copies;
  bool repeats_keys = false;
  host_waits waits;
};

/// Throws input_error for unknown keys and values.
framework_profile read_framework(const config_node&);

/// A shipped name or a file. Throws std::invalid_argument that lists the shipped names, input_error as read_framework does.
framework_profile read_framework_file(const std::string& name_or_file);

/// Sorted.
std::vector<std::string> shipped_frameworks();

}  // namespace attnsim
