// Ranks as threads of one process: a message is one copy from the sender's memory to the receiver's.
#pragma once

#include <chrono>
#include <functional>

#include "validate/transport.hpp"

namespace attnsim::validate {

/// Runs `body` once a rank, each on a thread of its own with its transport, and returns when all
/// have ended. The first failure of a rank ends the communication of all and is thrown here.
void run_in_process(int ranks, std::chrono::duration<double> time_out,
                    const std::function<void(transport&)>& body);

}  // namespace attnsim::validate
