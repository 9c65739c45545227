// The traffic that both sides of the comparison with SimGrid simulate. Every link carries 50 GB/s
// each way after 1 us. N hosts:
//
//   star       a private link each way between every host and an ideal switch
//   fat-tree   16 hosts a leaf, 16 spines, full bisection, the spine chosen by destination
//   dragonfly  N / 64 groups of 16 routers of 4 hosts, one link between any two groups
//
//   ring       N - 1 steps: send 64 MiB to the next host, receive 64 MiB from the last one, compute;
//              the next step starts when all three are done
//   grid       the same along the rows and the columns of a square grid at once, side - 1 steps
//   all-to-all one message to every other host, all at once
//
// Unequal: computation of 1 to 2 ms by host and step, messages of 1 to 2 MiB.
#pragma once

#include <cstdint>

namespace scenario {

inline constexpr double link_bytes_per_s = 50e9;
inline constexpr double link_latency_s = 1e-6;
inline constexpr double ring_bytes = 64.0 * 1024 * 1024;
inline constexpr double message_bytes = 1024.0 * 1024;
inline constexpr double compute_s = 1e-3;

/// 1 to 2, in 1000 steps, without pattern.
constexpr double unequal(int host, int number) {
  return 1 + static_cast<double>((host * 7919LL + number * 104729LL) % 1000) / 1000;
}

/// To the host `distance` further: whole bytes.
constexpr double message_bytes_to(int host, int distance, bool equal) {
  return equal ? message_bytes
               : static_cast<double>(
                     static_cast<std::uint64_t>(message_bytes * unequal(host, distance)));
}

}  // namespace scenario
