// What the back ends for NVIDIA GPUs share: everything but attention itself, for which it has this project's kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/products.hpp"

namespace attnsim::kernels::cuda {

class gpu : public backend {
 public:
  explicit gpu(const backend_options& options);
  ~gpu() override;
  gpu(const gpu&) = delete;
  gpu& operator=(const gpu&) = delete;

  std::string_view name() const override { return "cuda"; }

  void* allocate(std::size_t bytes) override;
  void free(void* memory) override;
  void copy(stream_id stream, void* destination, const void* source, std::size_t bytes) override;

  using backend::create_stream;
  stream_id create_stream(stream_priority priority) override;
  void call(stream_id stream, std::function<void()> function) override;
  void synchronize(stream_id stream) override;
  void* native_stream(stream_id stream) override { return at(stream); }

  event_id record(stream_id stream) override;
  void wait(stream_id stream, event_id event) override;
  double seconds_between(event_id from, event_id to) override;
  void release(event_id event) override;

  void begin_capture(stream_id stream) override;
  graph_id end_capture(stream_id stream) override;
  void launch(stream_id stream, graph_id graph) override;
  void release(graph_id graph) override;

  void forward(stream_id stream, const kernels::forward_arguments& arguments) override;
  void forward_each(stream_id stream, std::span<const kernels::forward_arguments> blocks) override;
  void backward(stream_id stream, const kernels::backward_arguments& arguments) override;
  void merge(stream_id stream, const token_shape& shape, const device_tensor& output,
             const device_tensor& lse, const device_tensor& part,
             const device_tensor& part_lse) override;
  void weigh(stream_id stream, const token_shape& shape, const device_tensor& output,
             const device_tensor& part_lse, std::int64_t parts, std::int64_t own,
             const device_tensor& whole_lse) override;
  void sink(stream_id stream, const token_shape& shape, const device_tensor& output,
            const device_tensor& lse, const device_tensor& sinks, std::int64_t parts) override;
  void expand(stream_id stream, const expand_shape& shape, const device_tensor& latent,
              const device_tensor& expansion, const device_tensor& key,
              const device_tensor& value) override;
  void delta(stream_id stream, const token_shape& shape, const device_tensor& output,
             const device_tensor& output_gradient, const device_tensor& delta) override;
  void accumulate(stream_id stream, const token_shape& shape, const device_tensor& sum,
                  const device_tensor& part) override;
  void cast(stream_id stream, const token_shape& shape, const device_tensor& destination,
            const device_tensor& source) override;
  void interleave(stream_id stream, const token_shape& shape, std::int64_t parts,
                  const device_tensor& destination, const device_tensor& source) override;
  void fill(stream_id stream, const token_shape& shape, const device_tensor& destination,
            float value) override;
  void product(stream_id stream, const product_arguments& arguments) override;
  void norm(stream_id stream, const norm_arguments& arguments) override;
  void norm_gradient(stream_id stream, const norm_gradient_arguments& arguments) override;
  void gate(stream_id stream, const gate_arguments& arguments) override;
  void gate_gradient(stream_id stream, const gate_gradient_arguments& arguments) override;
  void rotate(stream_id stream, const token_shape& shape, const device_tensor& destination,
              const device_tensor& source, const float* angles, bool back) override;

 protected:
  cudaStream_t at(stream_id stream) const {
    return streams_.at(static_cast<std::size_t>(stream)).queue;
  }

  /// Device memory for what is enqueued on `stream` while it lives.
  class workspace {
   public:
    workspace(std::size_t bytes, cudaStream_t stream);
    ~workspace();
    workspace(const workspace&) = delete;
    workspace& operator=(const workspace&) = delete;
    void* data() const { return data_; }

   private:
    cudaStream_t stream_;
    void* data_ = nullptr;
  };

 private:
  struct failure {
    std::mutex mutex;
    std::exception_ptr first;
  };
  struct queue_state {
    cudaStream_t queue;
    std::unique_ptr<failure> failed;
    void* kept = nullptr;
    std::size_t kept_bytes = 0;
  };
  /// In a capture one event cannot both tie streams together and be timed at the launch.
  struct marker {
    cudaEvent_t timed, order;
  };
  struct call_state;

  /// Device memory that a stream's operations leave what they found in, one after the other. Asking the pool each time takes longer
  /// than launching a kernel. What was too small stays, for graphs that know it.
  void* kept(stream_id stream, std::size_t bytes);

  static void run_call(void* state);
  void release_unused();
  const marker& at(event_id event) const { return events_.at(static_cast<std::size_t>(event)); }

  backend_options options_;
  std::vector<queue_state> streams_;
  std::vector<marker> events_;
  std::vector<event_id> unused_events_;
  bool capturing_ = false;
  std::vector<cudaGraphExec_t> graphs_;
  std::vector<void*> all_kept_;
  std::unordered_map<void*, std::size_t> sizes_;
  std::multimap<std::size_t, void*> unused_memory_;
  std::unique_ptr<products> products_;  ///< from the first one on
};

element to_element(data_type type);
extents to_extents(const token_shape& shape);
tensor to_tensor(const device_tensor& t);

template <typename T>
tensor_view<T> typed(const device_tensor& t) {
  const auto& view = t.view;
  return {static_cast<T*>(view.data), view.batch_stride, view.token_stride, view.head_stride};
}

/// The arguments of the kernels.
forward_arguments to_kernel(const kernels::forward_arguments& a);
backward_arguments to_kernel(const kernels::backward_arguments& a);

}  // namespace attnsim::kernels::cuda
