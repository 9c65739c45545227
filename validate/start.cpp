#include "validate/start.hpp"

#include <chrono>
#include <cstring>
#include <thread>

namespace attnsim::validate {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double start_together(transport& t, double clock_offset) {
  constexpr double notice = 5e-3, watchful = 1e-4;  // a sleeper wakes up late by less than that
  t.barrier();
  double start = steady_seconds() + notice;
  blob named(sizeof start);
  std::memcpy(named.data(), &start, sizeof start);
  std::memcpy(&start, t.share(named).at(0).data(), sizeof start);
  start -= clock_offset;
  std::this_thread::sleep_for(std::chrono::duration<double>(start - watchful - steady_seconds()));
  while (steady_seconds() < start) {
  }
  return steady_seconds() - start;
}

}  // namespace attnsim::validate
