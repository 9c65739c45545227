#include "kernels/cuda/generic_forward.cuh"

template void attnsim::kernels::cuda::generic_forward<__half>(const forward_parameters&, int,
                                                              cudaStream_t);
