// Exit codes: 0 done, 1 failed validation or internal error, 2 bad input, 3 infeasible.
#pragma once

#include <stdexcept>

namespace attnsim::cli {

/// A validation that ran and found wrong numbers: exit code 1.
class failed_validation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attnsim::cli
