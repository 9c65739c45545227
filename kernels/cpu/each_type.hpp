// Explicit instantiation over storage types.
//   ATTNSIM_EACH_TYPE(M)         M(T) for every type
//   ATTNSIM_EACH_TYPE_PAIR(M)    M(A, B) for every pair of types
//   ATTNSIM_EACH_RESULT(M)       M(T, R) for every type of inputs T and type of results R: T or
//   float
//   ATTNSIM_EACH_FP8_RESULT(M)   the same of fp8, whose results are bf16 or float
#pragma once

#include "kernels/float16.hpp"
#include "kernels/float8.hpp"

// clang-format off
#define ATTNSIM_EACH_TYPE(M) M(float) M(bf16) M(fp16) M(e4m3)
#define ATTNSIM_EACH_TYPE_PAIR(M)                              \
  M(float, float) M(float, bf16) M(float, fp16) M(float, e4m3) \
  M(bf16, float)  M(bf16, bf16)  M(bf16, fp16)  M(bf16, e4m3)  \
  M(fp16, float)  M(fp16, bf16)  M(fp16, fp16)  M(fp16, e4m3)  \
  M(e4m3, float)  M(e4m3, bf16)  M(e4m3, fp16)  M(e4m3, e4m3)
#define ATTNSIM_EACH_RESULT(M) \
  M(float, float) M(bf16, bf16) M(bf16, float) M(fp16, fp16) M(fp16, float)
#define ATTNSIM_EACH_FP8_RESULT(M) M(e4m3, bf16) M(e4m3, float)
// clang-format on
