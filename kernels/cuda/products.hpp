// Matrix products on a GPU by cuBLASLt: kernels/layer_block.hpp. Its first choice for a shape is asked for once and kept.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/layer_block.hpp"

namespace attnsim::kernels::cuda {

/// On one device, for one stream at a time.
class products {
 public:
  /// std::runtime_error where this was built without cuBLASLt, or it fails.
  products();
  ~products();

  void run(const product_arguments&, cudaStream_t);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// As "13.1.0"; empty without it.
const char* cublas_version();

}  // namespace attnsim::kernels::cuda
