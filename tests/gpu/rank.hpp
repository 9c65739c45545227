// What the programs for several GPUs share: options, the job's transport and this rank's device.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string>

#include "kernels/backends.hpp"
#include "validate/transports/nccl.hpp"

namespace attnsim::validate {

/// --NAME VALUE pairs. Throws for anything else.
class options {
 public:
  options(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (name.substr(0, 2) != "--" || i + 1 == argc)
        throw std::invalid_argument(name + ": expected --NAME VALUE");
      values_[name.substr(2)] = argv[i + 1];
    }
  }
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  double number(const std::string& name, double otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stod(found->second);
  }
  int count(const std::string& name, int otherwise) const {
    return static_cast<int>(number(name, otherwise));
  }

 private:
  std::map<std::string, std::string> values_;
};

/// --kernel, or the first back end that runs with NCCL.
inline std::string kernel_of(const options& o) {
  std::string first;
  for (const auto& b : kernels::backends()) {
    if (first.empty() && b.runs_with("nccl")) first = b.name;
  }
  return o.text("kernel", first);
}

inline std::unique_ptr<transport> join(const options& o, const job_place& place) {
  return join_nccl({.time_out = std::chrono::duration<double>(o.number("time-out", 60)),
                    .channels = o.count("channels", 0),
                    .blocking = o.count("blocking", 0) != 0},
                   place);
}

/// The whole of a program: one line on standard error and exit code 1 for what it throws.
template <typename Body>
int run_rank(int argc, char** argv, const Body& body) {
  try {
    return body(options(argc, argv), find_place()) ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    std::fflush(nullptr);
    std::_Exit(1);
  }
}

}  // namespace attnsim::validate
