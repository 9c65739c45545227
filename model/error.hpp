// Errors a user can cause. Each is one line that says where, what was found and what is expected; the command line
// maps input_error to exit code 2 and infeasible to exit code 3.
#pragma once

#include <stdexcept>
#include <string>

namespace attnsim {

/// Bad input: "FILE:LINE: KEY: 'VALUE': EXPECTED" or "--FLAG: 'VALUE': EXPECTED".
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// The common form. `where` is "file.yaml:12: key" or "--flag"; `value` is quoted as it was given.
  input_error(const std::string& where, const std::string& value, const std::string& expected)
      : std::runtime_error(where + ": '" + value + "': " + expected) {}
};

/// A well-formed request that cannot be met (heads not divisible, memory); names the nearest feasible ones.
class infeasible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attnsim
