#include "kernels/cuda/decode.cuh"

attnsim::kernels::cuda::decode_entry attnsim::kernels::cuda::decode_bf16(int head_dim, bool few) {
  return decode_entry_for<__nv_bfloat16>(head_dim, few);
}
