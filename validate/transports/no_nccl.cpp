#include "model/error.hpp"
#include "validate/transports/nccl.hpp"

namespace attnsim::validate {

std::unique_ptr<transport> join_nccl(const nccl_options&, const job_place&) {
  throw input_error(asked("transport"), "nccl",
                    "not in this build: install CUDA and NCCL and configure with -DATTNSIM_GPU=ON");
}

bool has_nccl() {
  return false;
}

std::string nccl_version() {
  return "";
}

}  // namespace attnsim::validate
