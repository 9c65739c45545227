// Progress of long work on stderr: a bar with the time left, which a terminal sees move; elsewhere a line every few
// seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace attnsim::cli {

class progress {
 public:
  /// `unit` is what is counted, as "samples".
  progress(std::string unit, bool quiet);
  ~progress() { end(); }
  progress(const progress&) = delete;

  /// The time left is inferred from what was done since the first call, or since the count began again.
  void show(std::size_t done, std::size_t wanted);
  /// Ends the bar's line.
  void end();

 private:
  using clock = std::chrono::steady_clock;

  std::string unit_;
  bool quiet_, terminal_, on_line_ = false;
  std::optional<std::size_t> before_;  ///< done at the first call
  std::size_t latest_ = 0;             ///< done at the latest
  clock::time_point started_, reported_;
};

}  // namespace attnsim::cli
