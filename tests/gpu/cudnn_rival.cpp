#include "kernels/cudnn/attention.hpp"
#include "tests/gpu/rival.hpp"

namespace attnsim::kernels {

std::optional<rival> find_rival() {
  return rival{
      .name = "cudnn",
      .version = std::to_string(cudnn::version()),
      .serves =
          [](const block_shape& s) {
            return cudnn::supported(s) && s.head_dim <= 128 && s.cols > 0;
          },
      .forward_workspace = cudnn::forward_workspace,
      .backward_workspace = cudnn::backward_workspace,
      .forward = [](const auto& a, void* workspace) { cudnn::forward(a, workspace, nullptr); },
      .backward = [](const auto& a, void* workspace) { cudnn::backward(a, workspace, nullptr); }};
}

}  // namespace attnsim::kernels
