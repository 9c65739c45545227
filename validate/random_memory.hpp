// Inputs for what is only timed: kernels draw more power, and clocks fall lower, on random numbers than on zeros.
#pragma once

#include <cstddef>

#include "kernels/backend.hpp"

namespace attnsim::validate {

/// Device memory full of bf16 numbers in (-1, 1), which are such also when read as fp32.
class random_memory {
 public:
  random_memory(kernels::backend&, std::size_t bytes);
  ~random_memory() { device_.free(data_); }
  random_memory(const random_memory&) = delete;
  random_memory& operator=(const random_memory&) = delete;

  std::byte* data() const { return data_; }

 private:
  kernels::backend& device_;
  std::byte* data_;
};

}  // namespace attnsim::validate
