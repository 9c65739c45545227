#include <stdexcept>

#include "validate/transports/nccl.hpp"

namespace attnsim::validate {

std::unique_ptr<transport> join_nccl(const nccl_options&, const job_place&) {
  throw std::runtime_error(
      "built without NCCL: configure with ATTNSIM_GPU=ON where CUDA and NCCL are installed");
}

bool has_nccl() {
  return false;
}

std::string nccl_version() {
  return "";
}

}  // namespace attnsim::validate
