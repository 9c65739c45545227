// What was predicted beside what was measured.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"

namespace attnsim::report {

/// A figure that was predicted and measured, or published.
struct comparison {
  std::string series, name;
  double measured = 0, predicted = 0;
  double low = 0, high = 0;  ///< of the prediction; equal: not known
};
/// Rows for up to 24 figures, their labels without the words that long ones share, else points. `unit` is "s", "B" (bytes) or a name; `measured` is what to call it.
section predicted_against(const std::string& measured, const std::string& unit,
                          const std::vector<comparison>&);

}  // namespace attnsim::report
