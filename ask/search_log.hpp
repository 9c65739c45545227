// The evaluations of a search in a file, a line each: the time in seconds, then the schedule. They survive the search.
#pragma once

#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "model/schedule/strategy.hpp"
#include "model/units.hpp"

namespace attnsim {

/// A strategy as one line: equal lines are equal schedules.
std::string key_of(const strategy&);

class search_log {
 public:
  /// Reads what the file holds, if it is there, and appends to it. `asked` stands in its first line. Throws input_error for a
  /// file whose first line is another, a line that is none of a log's, and one that cannot be written. No file: keeps nothing.
  search_log(const std::string& file, const std::string& asked);

  /// Both may be called by several threads.
  std::optional<seconds> find(const std::string& key) const;
  void add(const std::string& key, seconds);

 private:
  mutable std::mutex guard_;
  std::ofstream file_;
  std::map<std::string, seconds> known_;
};

}  // namespace attnsim
