// A schedule laid out for the event loop: each stream's operations in order, with what they need, on
// which lane they communicate and how much they send. A lane is a pattern of communication on one
// stream: its flows carry one operation at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/cost/placed_schedule.hpp"
#include "sim/clock.hpp"

namespace attnsim {

inline constexpr std::size_t most_streams = 8;

struct stream_operation {
  std::uint32_t operation = 0;  ///< its number in the program
  int lane = -1;                ///< -1: stays on the device
  int lanes = 1;                ///< so many from there, all at once
  int rounds = 1;               ///< and that so often
  bool kernel = false;
  picoseconds gap = 0;   ///< before it begins (model/cost/host_time.hpp)
  picoseconds wake = 0;  ///< of it, before anything moves
  double bytes = 0;      ///< that every rank which takes part sends
  double stretch = 1;    ///< as long as so many times the bytes take (model/cost/transfer.hpp)
  std::array<std::uint32_t, most_streams> needs{};
};

struct lane {
  int pattern = 0;
  std::uint32_t stream = 0;
  int channels = 0;
  link_kind transport = link_kind::nvlink;
};

struct stream_programs {
  std::vector<std::vector<stream_operation>> streams;
  std::vector<lane> lanes;
  std::uint32_t queues = 0;  ///< streams are dealt out to them in turn; 0: one each
  bool run_ahead = false;    ///< some senders need not wait for their receivers (connection.hpp)

  /// Throws std::logic_error for a schedule of more than `most_streams` streams.
  explicit stream_programs(const placed_schedule&);
};

}  // namespace attnsim
