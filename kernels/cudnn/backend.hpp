// An NVIDIA GPU whose attention is cuDNN's, the kernel that users' frameworks run; all else as kernels/cuda/backend.hpp.
//
// What cuDNN does not do (kernels/cudnn/attention.hpp: strided masks, windows; shapes it has no kernel for) the kernels
// of kernels/cuda do. cuDNN's backward computes delta from O itself. Where a schedule moved only delta, it is given an
// O of the same delta (output_with_delta), which costs one pass over dO.
#pragma once

#include "kernels/cuda/backend.hpp"

namespace attnsim::kernels::cudnn {

std::unique_ptr<backend> make_backend(const cuda::backend_options& options = {});

/// kernels/backends.hpp.
backend_description describe();

}  // namespace attnsim::kernels::cudnn
