#include "kernels/cudnn/backend.hpp"

#include <fmt/format.h>

#include "kernels/argument_checks.hpp"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/gpu.hpp"
#include "kernels/cudnn/attention.hpp"
#include "model/error.hpp"

namespace attnsim::kernels::cudnn {
namespace {

class cudnn_gpu final : public cuda::gpu {
 public:
  using gpu::gpu;

  std::string_view name() const override { return "cudnn"; }

  void forward(stream_id stream, const kernels::forward_arguments& a) override {
    check(a);
    if (!supported(a.shape)) return gpu::forward(stream, a);
    const auto kernel = cuda::to_kernel(a);
    try {
      const workspace memory(forward_workspace(kernel), at(stream));
      cudnn::forward(kernel, memory.data(), at(stream));
    } catch (const infeasible&) {
      gpu::forward(stream, a);
    }
  }

  void forward_each(stream_id stream, std::span<const kernels::forward_arguments> blocks) override {
    backend::forward_each(stream, blocks);
  }

  void backward(stream_id stream, const kernels::backward_arguments& a) override {
    check(a);
    if (!supported(a.shape)) return gpu::backward(stream, a);
    try {
      a.output.view.data ? run(stream, a) : run_with_delta(stream, a);
    } catch (const infeasible&) {
      gpu::backward(stream, a);
    }
  }

 private:
  void run(stream_id stream, const kernels::backward_arguments& a) {
    auto kernel = cuda::to_kernel(a);
    const workspace memory(backward_workspace(kernel), at(stream));
    cudnn::backward(kernel, memory.data(), at(stream));
  }

  void run_with_delta(stream_id stream, kernels::backward_arguments a) {
    const auto& s = a.shape;
    const token_shape rows{s.batch, s.rows, s.heads, s.head_dim};
    const workspace memory(dense_bytes(a.query.type, rows), at(stream));
    a.output = dense(memory.data(), a.query.type, rows);
    cuda::output_with_delta(cuda::to_extents(rows), cuda::to_tensor(a.output_gradient),
                            cuda::typed<const float>(a.delta), cuda::to_tensor(a.output),
                            at(stream));
    run(stream, a);
  }
};

}  // namespace

std::unique_ptr<backend> make_backend(const cuda::backend_options& options) {
  return std::make_unique<cudnn_gpu>(options);
}

backend_description describe() {
  const auto number = version();  // 91900
  auto d = cuda::describe();
  d.name = "cudnn";
  d.profile_kernel = fmt::format("cudnn-{}.{}", number / 10000, number / 100 % 100);
  d.prepares_shapes = true;
  d.versions = [number] {
    return std::map<std::string, std::string>{{"cudnn", std::to_string(number)}};
  };
  d.make = [](const device_options& o) { return cudnn::make_backend(cuda::options_of(o)); };
  return d;
}

}  // namespace attnsim::kernels::cudnn
