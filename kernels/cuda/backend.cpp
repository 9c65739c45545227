#include "kernels/cuda/backend.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "kernels/argument_checks.hpp"
#include "kernels/cuda/decode.hpp"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/layer.hpp"
#include "model/error.hpp"

namespace attnsim::kernels::cuda {
namespace {

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

}  // namespace

element to_element(data_type type) {
  if (type == data_type::fp8) throw infeasible("fp8: expected kernel cpu, which alone has it");
  return type == data_type::bf16   ? element::bf16
         : type == data_type::fp16 ? element::fp16
                                   : element::fp32;
}

extents to_extents(const token_shape& s) {
  return {s.batch, s.tokens, s.heads, s.head_dim};
}

tensor to_tensor(const device_tensor& t) {
  return {to_element(t.type), t.view};
}

forward_arguments to_kernel(const kernels::forward_arguments& a) {
  return {.shape = a.shape,
          .type = to_element(a.query.type),
          .output = to_element(a.output.type),
          .q = typed<const void>(a.query),
          .k = typed<const void>(a.key),
          .v = typed<const void>(a.value),
          .o = a.output.view,
          .l = typed<float>(a.lse)};
}

backward_arguments to_kernel(const kernels::backward_arguments& a) {
  return {.shape = a.shape,
          .type = to_element(a.query.type),
          .gradient = to_element(a.query_gradient.type),
          .q = typed<const void>(a.query),
          .k = typed<const void>(a.key),
          .v = typed<const void>(a.value),
          .d_o = typed<const void>(a.output_gradient),
          .o = typed<const void>(a.output),
          .l = typed<const float>(a.lse),
          .delta = typed<const float>(a.delta),
          .d_q = a.query_gradient.view,
          .d_k = a.key_gradient.view,
          .d_v = a.value_gradient.view};
}

gpu::gpu(const backend_options& options) : options_(options) {
  require(cudaSetDevice(options.device), "cudaSetDevice");
  if (!options.spin)
    require(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), "cudaSetDeviceFlags");
  // What a pool frees stays with it, so that workspaces cost nothing after the first.
  cudaMemPool_t pool = nullptr;
  require(cudaDeviceGetDefaultMemPool(&pool, options.device), "memory pool");
  auto keep = std::numeric_limits<std::uint64_t>::max();
  require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "memory pool");
}

gpu::~gpu() {
  cudaDeviceSynchronize();
  for (const auto& s : streams_) cudaStreamDestroy(s.queue);
  for (const auto g : graphs_) {
    if (g) cudaGraphExecDestroy(g);
  }
  for (const auto& e : events_) {
    cudaEventDestroy(e.timed);
    cudaEventDestroy(e.order);
  }
  release_unused();
  for (auto* const memory : all_kept_) cudaFree(memory);
  for (const auto& [memory, bytes] : sizes_) cudaFree(memory);
}

// --- Memory ---------------------------------------------------------------------------------------

void* gpu::allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (const auto found = unused_memory_.find(bytes); found != unused_memory_.end()) {
    memory = found->second;
    unused_memory_.erase(found);
  } else if (cudaMalloc(&memory, bytes) != cudaSuccess) {
    cudaGetLastError();
    release_unused();
    require(cudaMalloc(&memory, bytes), "cudaMalloc");
  }
  sizes_[memory] = bytes;
  if (options_.poison) {
    require(cudaMemset(memory, 0xff, bytes), "cudaMemset");
    require(cudaStreamSynchronize(nullptr), "cudaMemset");
  }
  return memory;
}

void gpu::free(void* memory) {
  const auto found = sizes_.find(memory);
  if (found == sizes_.end()) return;
  unused_memory_.emplace(found->second, memory);
  sizes_.erase(found);
}

void gpu::release_unused() {
  for (const auto& [bytes, memory] : unused_memory_) cudaFree(memory);
  unused_memory_.clear();
}

void gpu::copy(stream_id stream, void* destination, const void* source, std::size_t bytes) {
  require(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, at(stream)), "copy");
}

void* gpu::kept(stream_id stream, std::size_t bytes) {
  auto& on = streams_.at(static_cast<std::size_t>(stream));
  if (bytes <= on.kept_bytes) return on.kept;
  require(cudaMalloc(&on.kept, bytes), "workspace");
  all_kept_.push_back(on.kept);
  on.kept_bytes = bytes;
  return on.kept;
}

gpu::workspace::workspace(std::size_t bytes, cudaStream_t stream) : stream_(stream) {
  if (bytes > 0) require(cudaMallocAsync(&data_, bytes, stream), "workspace");
}

gpu::workspace::~workspace() {
  if (data_) cudaFreeAsync(data_, stream_);
}

// --- Streams and events ---------------------------------------------------------------------------

stream_id gpu::create_stream(stream_priority priority) {
  int least = 0, greatest = 0;
  require(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
  cudaStream_t stream = nullptr;
  const bool high = priority == stream_priority::high && options_.priorities;
  require(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high ? greatest : least),
          "stream");
  streams_.push_back({.queue = stream, .failed = std::make_unique<failure>()});
  return stream_id(streams_.size() - 1);
}

struct gpu::call_state {
  std::function<void()> function;
  failure* failed;
};

void gpu::run_call(void* state) {
  const std::unique_ptr<call_state> call(static_cast<call_state*>(state));
  try {
    call->function();
  } catch (...) {
    const std::lock_guard lock(call->failed->mutex);
    if (!call->failed->first) call->failed->first = std::current_exception();
  }
}

void gpu::call(stream_id stream, std::function<void()> function) {
  const auto& on = streams_.at(static_cast<std::size_t>(stream));
  auto state = std::make_unique<call_state>(std::move(function), on.failed.get());
  require(cudaLaunchHostFunc(on.queue, run_call, state.get()), "call");
  state.release();
}

void gpu::synchronize(stream_id stream) {
  const auto& on = streams_.at(static_cast<std::size_t>(stream));
  require(cudaStreamSynchronize(on.queue), "an operation of the stream");
  const std::lock_guard lock(on.failed->mutex);
  if (on.failed->first) std::rethrow_exception(std::exchange(on.failed->first, nullptr));
}

event_id gpu::record(stream_id stream) {
  if (unused_events_.empty()) {
    marker made{};
    require(cudaEventCreate(&made.timed), "event");
    require(cudaEventCreateWithFlags(&made.order, cudaEventDisableTiming), "event");
    unused_events_.push_back(event_id(events_.size()));
    events_.push_back(made);
  }
  const auto event = unused_events_.back();
  unused_events_.pop_back();
  const auto flags = capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault;
  require(cudaEventRecordWithFlags(at(event).timed, at(stream), flags), "event");
  if (capturing_) require(cudaEventRecord(at(event).order, at(stream)), "event");
  return event;
}

void gpu::wait(stream_id stream, event_id event) {
  require(cudaStreamWaitEvent(at(stream), capturing_ ? at(event).order : at(event).timed, 0),
          "event");
}

double gpu::seconds_between(event_id from, event_id to) {
  require(cudaEventSynchronize(at(from).timed), "event");
  require(cudaEventSynchronize(at(to).timed), "event");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, at(from).timed, at(to).timed), "event");
  return 1e-3 * milliseconds;
}

void gpu::release(event_id event) {
  unused_events_.push_back(event);
}

void gpu::begin_capture(stream_id stream) {
  require(cudaStreamBeginCapture(at(stream), cudaStreamCaptureModeRelaxed), "capture");
  capturing_ = true;
}

graph_id gpu::end_capture(stream_id stream) {
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(at(stream), &graph), "capture");
  cudaGraphExec_t made = nullptr;
  const auto error = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  require(error, "graph");
  graphs_.push_back(made);
  return graph_id(graphs_.size() - 1);
}

void gpu::launch(stream_id stream, graph_id graph) {
  require(cudaGraphLaunch(graphs_.at(static_cast<std::size_t>(graph)), at(stream)), "graph");
}

void gpu::release(graph_id graph) {
  auto& unused = graphs_.at(static_cast<std::size_t>(graph));
  if (unused) cudaGraphExecDestroy(std::exchange(unused, nullptr));
}

// --- Operations -----------------------------------------------------------------------------------

void gpu::forward(stream_id stream, const kernels::forward_arguments& a) {
  check(a);
  const auto kernel = to_kernel(a);
  if (options_.kernels == path::automatic && prefers_decode(a.shape)) {
    return decode(kernel, kept(stream, decode_workspace(kernel)), at(stream));
  }
  cuda::forward(kernel, at(stream), options_.kernels);
}

/// Blocks of few rows that are alike but for lengths by one call, others one by one.
void gpu::forward_each(stream_id stream, std::span<const kernels::forward_arguments> blocks) {
  std::vector<cuda::forward_arguments> few;
  for (const auto& a : blocks) {
    check(a);
    if (options_.kernels == path::automatic && prefers_decode(a.shape)) few.push_back(to_kernel(a));
  }
  const auto alike = [&](const auto& a) { return decode_alike(a, few.front()); };
  if (few.size() < blocks.size() || !std::all_of(few.begin(), few.end(), alike))
    return backend::forward_each(stream, blocks);
  decode(few, kept(stream, decode_workspace(few)), at(stream));
}

void gpu::backward(stream_id stream, const kernels::backward_arguments& a) {
  check(a);
  const workspace memory(backward_workspace(a.shape), at(stream));
  cuda::backward(to_kernel(a), memory.data(), at(stream), options_.kernels);
}

void gpu::merge(stream_id stream, const token_shape& shape, const device_tensor& output,
                const device_tensor& lse, const device_tensor& part,
                const device_tensor& part_lse) {
  check_merge(shape, lse, part_lse);
  cuda::merge(to_extents(shape), to_tensor(output), typed<float>(lse), to_tensor(part),
              typed<const float>(part_lse), at(stream));
}

void gpu::weigh(stream_id stream, const token_shape& shape, const device_tensor& output,
                const device_tensor& part_lse, std::int64_t parts, std::int64_t own,
                const device_tensor& whole_lse) {
  check_weigh(shape, part_lse, parts, own, whole_lse);
  cuda::weigh(to_extents(shape), to_tensor(output), typed<const float>(part_lse), parts, own,
              typed<float>(whole_lse), at(stream));
}

void gpu::sink(stream_id stream, const token_shape& shape, const device_tensor& output,
               const device_tensor& lse, const device_tensor& sinks, std::int64_t parts) {
  check_sink(shape, lse, sinks, parts);
  cuda::sink(to_extents(shape), to_tensor(output), typed<float>(lse), typed<const float>(sinks),
             parts, at(stream));
}

void gpu::expand(stream_id stream, const expand_shape& shape, const device_tensor& latent,
                 const device_tensor& expansion, const device_tensor& key,
                 const device_tensor& value) {
  check(shape);
  cuda::expand(shape, to_tensor(latent), to_tensor(expansion), to_tensor(key), to_tensor(value),
               at(stream));
}

void gpu::delta(stream_id stream, const token_shape& shape, const device_tensor& output,
                const device_tensor& output_gradient, const device_tensor& delta) {
  check_delta(shape, output, output_gradient, delta);
  row_dot(to_extents(shape), to_tensor(output_gradient), to_tensor(output), typed<float>(delta),
          at(stream));
}

void gpu::accumulate(stream_id stream, const token_shape& shape, const device_tensor& sum,
                     const device_tensor& part) {
  check(shape);
  cuda::accumulate(to_extents(shape), to_tensor(sum), to_tensor(part), at(stream));
}

void gpu::cast(stream_id stream, const token_shape& shape, const device_tensor& destination,
               const device_tensor& source) {
  check(shape);
  cuda::copy(to_extents(shape), to_tensor(destination), to_tensor(source), at(stream));
}

void gpu::interleave(stream_id stream, const token_shape& shape, std::int64_t parts,
                     const device_tensor& destination, const device_tensor& source) {
  check_interleave(shape, parts, destination, source);
  cuda::interleave(to_extents(shape), parts, to_tensor(destination), to_tensor(source), at(stream));
}

void gpu::fill(stream_id stream, const token_shape& shape, const device_tensor& destination,
               float value) {
  check(shape);
  cuda::fill(to_extents(shape), to_tensor(destination), value, at(stream));
}

void gpu::product(stream_id stream, const product_arguments& a) {
  check(a);
  if (!products_) products_ = std::make_unique<products>();
  products_->run(a, at(stream));
}

void gpu::norm(stream_id stream, const norm_arguments& a) {
  check(a);
  cuda::norm(a, at(stream));
}
void gpu::norm_gradient(stream_id stream, const norm_gradient_arguments& a) {
  check(a);
  cuda::norm_gradient(a, at(stream));
}
void gpu::gate(stream_id stream, const gate_arguments& a) {
  check(a);
  cuda::gate(a, at(stream));
}
void gpu::gate_gradient(stream_id stream, const gate_gradient_arguments& a) {
  check(a);
  cuda::gate_gradient(a, at(stream));
}

void gpu::rotate(stream_id stream, const token_shape& shape, const device_tensor& destination,
                 const device_tensor& source, const float* angles, bool back) {
  check_rotation(shape);
  cuda::rotate(to_extents(shape), to_tensor(destination), to_tensor(source), angles, back,
               at(stream));
}

std::unique_ptr<backend> make_backend(const backend_options& options) {
  return std::make_unique<gpu>(options);
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

backend_options options_of(const device_options& o) {
  // A rank that spins keeps a core busy, one of NCCL's threads another, and sockets the kernel's.
  const bool enough_cores =
      3 * o.local_ranks <= static_cast<int>(std::thread::hardware_concurrency());
  return {.device = o.local_rank % device_count(),
          .spin = enough_cores,
          .priorities = o.priorities,
          .poison = o.poison};
}

namespace {

/// Of the current device, as "NVIDIA H100 80GB HBM3".
std::string device_name() {
  int device = 0;
  cudaDeviceProp properties;
  require(cudaGetDevice(&device), "device");
  require(cudaGetDeviceProperties(&properties, device), "device");
  return properties.name;
}

/// As "13.0".
std::string runtime_version() {
  return std::to_string(CUDART_VERSION / 1000) + '.' + std::to_string(CUDART_VERSION % 1000 / 10);
}

}  // namespace

backend_description describe() {
  return {.name = "cuda",
          .profile_kernel = "attnsim-cuda",
          .transports = {"nccl"},
          .has_graphs = true,
          .present = [] { return device_count() > 0; },
          .versions =
              [] {
                return std::map<std::string, std::string>{{"card", device_name()},
                                                          {"cards", std::to_string(device_count())},
                                                          {"cublas", cublas_version()},
                                                          {"cuda", runtime_version()}};
              },
          .make = [](const device_options& o) { return make_backend(options_of(o)); }};
}

}  // namespace attnsim::kernels::cuda
