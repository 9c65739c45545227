// The kernels of a library, which attention_check and attention_bench hold this project's beside: with the arguments of
// kernels/cuda/attention.hpp. CMake takes the file that defines it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/cuda/attention.hpp"

namespace attnsim::kernels {

struct rival {
  std::string name, version;
  std::function<bool(const block_shape&)> serves;
  std::function<std::size_t(const cuda::forward_arguments&)> forward_workspace;
  std::function<std::size_t(const cuda::backward_arguments&)> backward_workspace;
  std::function<void(const cuda::forward_arguments&, void* workspace)> forward;
  std::function<void(const cuda::backward_arguments&, void* workspace)> backward;
};

/// None where the library was not found.
std::optional<rival> find_rival();

}  // namespace attnsim::kernels
