#include "validate/devices.hpp"

#include "kernels/cpu/backend.hpp"
#include "model/error.hpp"
#if ATTNSIM_WITH_CUDA
#include "kernels/cuda/backend.hpp"
#endif
#if ATTNSIM_WITH_CUDNN
#include "kernels/cudnn/backend.hpp"
#endif

namespace attnsim::validate {
namespace {

std::string names() {
  std::string list = "cpu";
#if ATTNSIM_WITH_CUDA
  list += ", cuda";
#endif
#if ATTNSIM_WITH_CUDNN
  list += ", cudnn";
#endif
  return list;
}

#if ATTNSIM_WITH_CUDA
kernels::cuda::backend_options options(const device_choice& choice) {
  const int devices = kernels::cuda::device_count();
  if (devices == 0) throw input_error("--kernel", choice.kernel, "there is no GPU here");
  return {.device = choice.local_rank % devices,
          .priorities = choice.priorities,
          .poison = choice.poison};
}
#endif

}  // namespace

std::unique_ptr<kernels::backend> make_device(const device_choice& choice) {
  if (choice.kernel == "cpu") return kernels::cpu::make_backend();
#if ATTNSIM_WITH_CUDA
  if (choice.kernel == "cuda") return kernels::cuda::make_backend(options(choice));
#endif
#if ATTNSIM_WITH_CUDNN
  if (choice.kernel == "cudnn") return kernels::cudnn::make_backend(options(choice));
#endif
  throw input_error("--kernel", choice.kernel, "expected one of: " + names());
}

std::vector<std::string> gpu_kernels() {
  std::vector<std::string> list;
#if ATTNSIM_WITH_CUDA
  if (kernels::cuda::device_count() > 0) list.push_back("cuda");
#endif
#if ATTNSIM_WITH_CUDNN
  if (!list.empty()) list.push_back("cudnn");
#endif
  return list;
}

}  // namespace attnsim::validate
