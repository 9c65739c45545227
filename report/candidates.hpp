// Candidates side by side: their times and their memory.
#pragma once

#include <vector>

#include "ask/predict.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// Time of every candidate: computing by pass, exposed communication, interval.
section ranking(const std::vector<prediction>& ranked);

/// Peak of every pass, or of every candidate's largest pass, against the device's memory.
section memory(const prediction&, byte_count limit);
section memory(const std::vector<prediction>& ranked, byte_count limit);

}  // namespace attnsim::report
