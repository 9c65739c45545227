// Explicit instantiation over storage types: ATTNSIM_EACH_TYPE(M) expands M(T) for every type,
// ATTNSIM_EACH_TYPE_PAIR(M) expands M(A, T) for every pair.
#pragma once

#include "kernels/float16.hpp"

#define ATTNSIM_EACH_TYPE(M) M(float) M(bf16) M(fp16)
#define ATTNSIM_EACH_TYPE_PAIR(M)                                                        \
  M(float, float)                                                                        \
  M(float, bf16)                                                                         \
  M(float, fp16) M(bf16, float) M(bf16, bf16) M(bf16, fp16) M(fp16, float) M(fp16, bf16) \
      M(fp16, fp16)
