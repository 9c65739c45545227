#include "kernels/cuda/hopper_forward.cuh"

template void attnsim::kernels::cuda::hopper_forward<__nv_bfloat16>(const forward_parameters&, int,
                                                                    cudaStream_t);
