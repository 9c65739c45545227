#include "kernels/cuda/hopper_backward.cuh"

template void attnsim::kernels::cuda::hopper_backward<__half>(const backward_parameters&, int,
                                                              cudaStream_t);
