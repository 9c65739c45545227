// What happened in a run: where its time went, on the critical rank and on the links.
#pragma once

#include <string>
#include <vector>

#include "ask/predict.hpp"
#include "model/cluster/cluster.hpp"
#include "model/schedule/schedule.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// One pass of a run, with its intervals and loads.
struct recorded_pass {
  std::string run;  ///< "predicted" or "measured", where there are both; else empty
  schedule program;
  timeline times;
  seconds start;
};

/// The passes of a prediction, simulated once more, one after the other.
std::vector<recorded_pass> record(const cluster&, const prediction&);

/// What the streams of the rank that ends last did: how long which operations took, and when they ran.
section breakdown(const std::vector<recorded_pass>&);
section critical_rank(const std::vector<recorded_pass>&);

/// How busy links were, over all passes: on the drawing, and by what they join.
section link_utilisation(const cluster&, const std::vector<recorded_pass>&);

}  // namespace attnsim::report
