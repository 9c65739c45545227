#include "kernels/cuda/generic_forward.cuh"

template void attnsim::kernels::cuda::generic_forward<__nv_bfloat16>(const forward_parameters&, int,
                                                                     cudaStream_t);
