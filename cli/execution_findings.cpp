#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/findings.hpp"
#include "kernels/backends.hpp"
#include "validate/transports/mpi.hpp"
#include "validate/transports/nccl.hpp"

namespace attnsim::cli {
namespace {

/// "card NVIDIA H200, cards 1, cuda 13.0".
std::string versions_of(const kernels::backend_description& b) {
  std::vector<std::string> all;
  for (const auto& [name, version] : b.versions()) all.push_back(name + " " + version);
  return fmt::format("{}", fmt::join(all, ", "));
}

finding of_backend(const kernels::backend_description& b) {
  const auto what = "kernels " + b.name;
  if (!b.present()) return {what, false, "built; there is no device for it here"};
  return {what, true, b.on_host ? "this machine's processors" : versions_of(b)};
}

}  // namespace

std::vector<finding> findings_of_execution() {
  std::vector<finding> all;
  for (const auto& b : kernels::backends()) all.push_back(of_backend(b));
  for (const auto& name : kernels::backends_left_out()) {
    all.push_back({"kernels " + name, false,
                   "not in this build: install CUDA (and cuDNN), configure with -DATTNSIM_GPU=ON"});
  }
  all.push_back({"transport inprocess", true, "a thread a rank"});
  all.push_back({"transport mpi", validate::has_mpi(),
                 validate::has_mpi() ? "start with mpirun or srun"
                                     : "not in this build: install MPI (libopenmpi-dev), configure "
                                       "with -DATTNSIM_MPI=ON"});
  all.push_back({"transport nccl", validate::has_nccl(),
                 validate::has_nccl()
                     ? "NCCL " + validate::nccl_version()
                     : "not in this build: install NCCL, configure with -DATTNSIM_GPU=ON"});
  return all;
}

}  // namespace attnsim::cli
