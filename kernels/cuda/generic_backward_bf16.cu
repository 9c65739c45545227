#include "kernels/cuda/generic_backward.cuh"

template void attnsim::kernels::cuda::generic_backward<__nv_bfloat16>(const backward_parameters&,
                                                                      int, cudaStream_t);
