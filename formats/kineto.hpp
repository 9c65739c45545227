// Traces of the PyTorch profiler (Kineto, JSON for chrome://tracing): the attention and NCCL kernels of
// a rank, and the timeline of a schedule that they make, to compare with a predicted one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/source.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/timeline.hpp"

namespace attnsim::formats {

enum class kernel_role {
  attention,
  attention_backward,
  all_gather,
  reduce_scatter,
  point_to_point,  ///< NCCL's SendRecv: shifts, transposes, all-to-alls
  other_collective,
  other,
};

/// By the kernel's name: NCCL's ncclKernel_... and ncclDevKernel_...; attention of FlashAttention,
/// cuDNN and TransformerEngine, PyTorch, xFormers, FlashInfer, FlexAttention, SageAttention, Triton,
/// AOTriton, vLLM, TensorRT-LLM, Composable Kernel.
kernel_role role_of(std::string_view kernel_name);

struct traced_kernel {
  std::string name;
  kernel_role role = kernel_role::other;
  int device = 0;
  int stream = 0;
  seconds start, end;  ///< from the first kernel's start
};

struct kineto_trace {
  int rank = 0;
  std::string device;                  ///< "NVIDIA H100 80GB HBM3"; empty: not told
  std::vector<traced_kernel> kernels;  ///< in order of their start
};

/// Throws input_error for what is no trace, or one without kernels.
kineto_trace read_kineto(const source&);

/// What a rank did in each repetition of a pass: the i-th kernel of a role is the i-th operation of
/// that role in launch order. Times count from the repetition's first such kernel; compute is the
/// time in which the stream of the attention kernels was busy. Throws input_error when the trace
/// does not hold a whole number of passes.
std::vector<rank_timeline> match_kernels(const kineto_trace&, const schedule&);

}  // namespace attnsim::formats
