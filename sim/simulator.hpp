// Discrete-event simulation of a schedule on a cluster.
//
// A device has in-order streams and multiprocessors. An attention kernel fills the device. A
// communication kernel holds its channels' multiprocessors from the moment it is launched, waiting
// for its peers included, until its data has moved. So launch order matters (measured, see README):
// communication launched first runs beside the kernel, which then takes `slowdown` times as long
// (device.hpp); communication that becomes ready while a kernel runs waits for room: until that
// kernel call ends, or its wave of thread blocks where the kernel is not persistent. Where
// transports need no channels (copy engines, CPUs) or nothing runs, it starts at once.
//
// Where a run starts on idle devices (strategy, start), its host launches the operations one after the
// other, in the order of the program, or all at once as a graph, and none starts before it is
// launched. So too where a framework's host is asked for (model/cost/host_time.hpp), each rank's by its own calls; where it
// waits for communication (strategy, waits) it goes on at its end. Else the host is ahead of the device.
//
// The network is fluid and max-min fair (flow_network.hpp). Ranks, flows and links that behave
// alike are simulated once (symmetry.hpp), ranks of a ring also where they do so at different times (ring_of_ranks.hpp).
//
// What happens at one picosecond has an order: flows of shared links end; flows start, then those with links to themselves
// end; what ranks wait for is over, by stream; ranks start what can start.
//
//   stream_programs  the schedule, laid out for the event loop
//   rank_run         what one rank does
//   kernel_run       the kernel on one device
//   traffic          the flows under way
//   connection       messages that do not wait for their receivers
//   last_messages    the end of a program without events, where nothing holds up anything else
#pragma once

#include <cstddef>
#include <functional>

#include "model/cost/placed_schedule.hpp"
#include "sim/timeline.hpp"

namespace attnsim {

/// Is told now and then how many of the operations are done, of all ranks that are simulated.
using simulation_progress = std::function<void(std::size_t done, std::size_t wanted)>;

struct simulation_options {
  bool record = false;          ///< keep every interval of the ranks
  bool record_slowest = false;  ///< of the rank that ends last only
  bool record_links = false;    ///< keep the load of the links over time
  bool launches = true;         ///< false: as if a framework's host were ahead of the device
  bool merge_symmetric = true;  ///< false: simulate every rank; same result, for tests
  simulation_progress progress = {};
};

/// Throws input_error when the run is longer than the clock can count (clock.hpp), std::logic_error when the schedule cannot
/// progress; the message lists which rank waits for what.
timeline simulate(const placed_schedule&, const simulation_options& = {});

}  // namespace attnsim
