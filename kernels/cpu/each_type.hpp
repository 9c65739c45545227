// Explicit instantiation over storage types.
//   ATTNSIM_EACH_TYPE(M)         M(T) for every type
//   ATTNSIM_EACH_TYPE_PAIR(M)    M(A, B) for every pair of types
//   ATTNSIM_EACH_RESULT(M)       M(T, R) for every type of inputs T and type of results R: T or
//   float
#pragma once

#include "kernels/float16.hpp"

// clang-format off
#define ATTNSIM_EACH_TYPE(M) M(float) M(bf16) M(fp16)
#define ATTNSIM_EACH_TYPE_PAIR(M)               \
  M(float, float) M(float, bf16) M(float, fp16) \
  M(bf16, float)  M(bf16, bf16)  M(bf16, fp16)  \
  M(fp16, float)  M(fp16, bf16)  M(fp16, fp16)
#define ATTNSIM_EACH_RESULT(M) \
  M(float, float) M(bf16, bf16) M(bf16, float) M(fp16, fp16) M(fp16, float)
// clang-format on
