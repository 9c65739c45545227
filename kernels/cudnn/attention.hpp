// Attention on one block by cuDNN's fused operations, with the arguments of kernels/cuda/attention.hpp.
//
// An operation graph of matrix products, pointwise operations and reductions, spelled as cuDNN's pattern matcher knows
// it, is built through the backend C API; cuDNN 9 turns it into one fused kernel. Plans are kept for the life of the
// process, one a shape, mask and set of strides; building one takes milliseconds to seconds.
//
//   masks      full, causal and offset causal with one stride on both sides; a negative offset (strictly causal) by
//              leaving out the rows that see nothing. No sliding windows, no two strides: supported() tells, the others
//              throw infeasible
//   outputs    of the inputs' type; fp32 is a converted copy, for the sake of the same interface, not more precise
//   backward   computes delta from `o` and `d_o` itself
#pragma once

#include "kernels/cuda/attention.hpp"

namespace attnsim::kernels::cudnn {

using cuda::backward_arguments;
using cuda::element;
using cuda::forward_arguments;
using cuda::stream;

/// Whether this back end computes the block at all; cuDNN may still have no kernel for it on the device at hand.
bool supported(const block_shape& shape);

/// Bytes of workspace, 256-byte aligned. These build the plan.
std::size_t forward_workspace(const forward_arguments& arguments);
std::size_t backward_workspace(const backward_arguments& arguments);

void forward(const forward_arguments& arguments, void* workspace, stream queue);
void backward(const backward_arguments& arguments, void* workspace, stream queue);

/// cuDNN's version, e.g. 91900.
std::size_t version();

}  // namespace attnsim::kernels::cudnn
