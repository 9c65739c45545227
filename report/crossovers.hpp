// Where the best choice changes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ask/predict.hpp"
#include "model/cluster/cluster.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// Time of several candidates at several values of something.
struct crossing {
  std::string of;                   ///< "tokens", "nics.bandwidth"
  std::vector<std::string> values;  ///< in order
  int asked = -1;                   ///< which of them the rest of the page is about
  std::vector<std::pair<std::string, std::vector<seconds>>> times;  ///< by name; zero: infeasible
};
section crossovers(const crossing&, const std::string& note);

/// The best candidate of every schedule, by the closed form, for a sixteenth to 16 times the tokens.
crossing over_sequences(const cluster&, const std::vector<prediction>& ranked);

}  // namespace attnsim::report
