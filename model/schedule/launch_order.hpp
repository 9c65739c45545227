// In which order a device is given the operations of a schedule. Streams keep their own order; what changes is who is
// there first when communication and computation become ready together.
//
//   communication_first  as the generators write it: a transfer before the kernel that is to hide it
//   compute_first        as frameworks often have it: the kernel takes the device, the transfer waits for room
#pragma once

#include <string_view>

#include "model/schedule/schedule.hpp"

namespace attnsim {

enum class launch_order { communication_first, compute_first };

std::string_view name_of(launch_order);
/// Throws std::invalid_argument that lists the names.
launch_order parse_launch_order(std::string_view text);

/// The schedule with every communication launched after the next operation of the compute stream that does not need it.
schedule launched_compute_first(schedule);

}  // namespace attnsim
