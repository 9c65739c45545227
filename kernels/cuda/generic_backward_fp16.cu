#include "kernels/cuda/generic_backward.cuh"

template void attnsim::kernels::cuda::generic_backward<__half>(const backward_parameters&, int,
                                                               cudaStream_t);
