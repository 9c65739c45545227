// What if one value of the question were another: a plan for each value from one to another, doubling.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ask/question.hpp"

namespace attnsim::ask {

struct what_if {
  std::string key;                  ///< a field, or by its path a key of the cluster file
  std::vector<std::string> values;  ///< as written
};

/// "key=from..to", such as seq=64K..1M or nics.bandwidth="100 Gb/s".."1600 Gb/s". Throws input_error about what-if.
what_if parse_what_if(const std::string& text);

struct what_if_answer {
  struct of_schedule {
    std::string schedule;
    std::vector<seconds> times;  ///< of its best candidate, by value; 0: it has none
  };
  struct change {
    std::size_t value;  ///< from this value on, an index, the best is another than before
    std::string from, to;
  };

  what_if varied;
  std::vector<prediction> best;  ///< of all, by value
  std::vector<of_schedule> schedules;

  std::vector<change> changes() const;
};

/// Schedules by name, none: all. Throws as plan() does.
what_if_answer answer(const question&, const what_if&, const std::vector<std::string>& schedules);

}  // namespace attnsim::ask
