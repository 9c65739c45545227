#include <stdexcept>

#include "kernels/cuda/products.hpp"

namespace attnsim::kernels::cuda {

struct products::state {};

products::products() {
  throw std::runtime_error("matrix products: this attnsim was built without cuBLASLt");
}
products::~products() = default;
void products::run(const product_arguments&, cudaStream_t) {}

const char* cublas_version() {
  return "";
}

}  // namespace attnsim::kernels::cuda
