#include "kernels/cuda/decode.cuh"

attnsim::kernels::cuda::decode_entry attnsim::kernels::cuda::decode_fp16(int head_dim, bool few) {
  return decode_entry_for<__half>(head_dim, few);
}
