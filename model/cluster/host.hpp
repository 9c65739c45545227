// A host profile: what the CPU takes to launch the operations of a schedule, as a framework such as eager PyTorch does, call
// by call. Every number with its source in topologies/hosts/NAME.yaml. cost/host_time.hpp adds them up.
//
// Launches of this project's own executor, whose measured runs start on idle devices, are in the device's profile:
// idle_start_profile.
#pragma once

#include <string>

#include "model/cluster/device.hpp"
#include "model/units.hpp"

namespace attnsim {

class config_node;

/// Time of the host for one call, whatever its size.
struct host_profile {
  std::string name;  ///< empty: no host, launches take no time
  std::string source;
  attnsim::basis basis = attnsim::basis::assumed;
  seconds attention;           ///< one kernel call
  seconds attention_backward;  ///< the same, delta included
  seconds merge;  ///< of a partial output by a framework's operations (merge_kind::unfused)
  seconds add;    ///< of two tensors; merges in one kernel
  seconds copy;
  seconds cast;              ///< to another number format; where it is not given, as copy
  seconds exchange;          ///< send and receive at once, of any number of tensors
  seconds exchanged_tensor;  ///< and for each of them
  seconds all_gather;        ///< a tensor, as the other collectives
  seconds reduce_scatter;
  seconds all_to_all;
  double slowdown = 1;     ///< of a host that is slower than the one measured, on all times
  double uncertainty = 0;  ///< relative half-width of a 90 % interval around the sum of all calls
};

/// Reads a profile; throws input_error for unknown keys and missing values. Only `source`, `basis`, `cast`, `slowdown`
/// and `uncertainty` may be left out:
///
///   name: example
///   source: where the numbers are from
///   basis: measured              # or published; else they are assumed
///   attention: 16 us
///   ...                          # each time above under its name
///   slowdown: 2
///   uncertainty: 0.5
host_profile read_host(const config_node&);

}  // namespace attnsim
