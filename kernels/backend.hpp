// A device as an executor sees it: memory, streams, events and the operations of a schedule.
//
// Modelled on CUDA, so that a CUDA back end is a thin layer. Each operation is enqueued on a stream
// and returns at once; operations of one stream run one after another in the order of the calls,
// those of different streams in any order except where wait() ties them together. What a schedule's
// streams overlap is thus decided by the device, as in a real run. Back ends: cpu (kernels/cpu),
// cuda, cudnn, and one that computes nothing and takes as long as it is told.
//
// One host thread calls a back end at a time. Errors in arguments are thrown by the call
// (kernels/argument_checks.hpp), errors while an operation runs by the next synchronize() of its
// stream. Memory an operation uses, host memory of a copy included, must last until it has run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "kernels/attention_block.hpp"
#include "kernels/layer_block.hpp"
#include "model/attention/attention.hpp"

namespace attnsim::kernels {

enum class stream_id : std::int32_t {};
enum class event_id : std::int32_t {};
enum class graph_id : std::int32_t {};

/// Where both kinds are ready to start, work of high streams comes first, if the device has
/// priorities.
enum class stream_priority : std::uint8_t { normal, high };

/// A tensor in device memory, of a type known at run time. Owns nothing.
struct device_tensor {
  data_type type = data_type::fp32;
  tensor_view<void> view;
};

/// The tensor [batch][token][head][d] without gaps that starts at `data`.
device_tensor dense(void* data, data_type type, const token_shape& shape);

/// Its bytes.
std::size_t dense_bytes(data_type type, const token_shape& shape);

/// The same tensor from token `first` on, taking every `step`-th: a block's rows or columns, a
/// rank's part of a ring.
device_tensor tokens_from(device_tensor tensor, std::int64_t first, std::int64_t step = 1);

/// Query, key and value of one type, output of that type (bf16 of fp8) or fp32, lse fp32; shapes as in
/// kernels/cpu/attention.hpp.
struct forward_arguments {
  block_shape shape;
  device_tensor query;
  device_tensor key;
  device_tensor value;
  device_tensor output;
  device_tensor lse;
};

/// Query, key and value of one type, output_gradient of that type (bf16 of fp8), gradients all of the latter or all fp32, lse
/// and delta fp32.
struct backward_arguments {
  block_shape shape;
  device_tensor query;
  device_tensor key;
  device_tensor value;
  device_tensor output;  ///< of the whole rows; read only where a library computes delta itself
  device_tensor output_gradient;
  device_tensor lse;    ///< of the whole rows
  device_tensor delta;  ///< of the whole rows
  device_tensor query_gradient;
  device_tensor key_gradient;
  device_tensor value_gradient;
};

class backend {
 public:
  virtual ~backend() = default;
  virtual std::string_view name() const = 0;

  // Memory. copy() takes host and device addresses on either side.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  virtual void copy(stream_id stream, void* destination, const void* source, std::size_t bytes) = 0;

  // Streams last as long as the back end. call() runs a host function in stream order; it must not
  // call the back end (cudaLaunchHostFunc). native_stream() is the cudaStream_t for libraries that
  // enqueue by themselves (NCCL), nullptr where there is none.
  virtual stream_id create_stream(stream_priority priority) = 0;
  stream_id create_stream() { return create_stream(stream_priority::normal); }
  virtual void call(stream_id stream, std::function<void()> function) = 0;
  virtual void synchronize(stream_id stream) = 0;
  virtual void* native_stream(stream_id stream) = 0;

  // Events mark a point of a stream: record() behind all it was given so far. wait() holds a stream
  // up until the event's point is passed. seconds_between() waits for both. Each is to be released.
  virtual event_id record(stream_id stream) = 0;
  virtual void wait(stream_id stream, event_id event) = 0;
  virtual double seconds_between(event_id from, event_id to) = 0;
  virtual void release(event_id event) = 0;

  // Graphs (CUDA graphs). What is enqueued between begin_capture() and end_capture() on that stream,
  // and on those that wait for its events, runs only when the graph is launched, and then as one. The
  // other streams must join it again before the end. Events recorded meanwhile mark points of the
  // launch. Back ends without graphs throw std::runtime_error.
  virtual void begin_capture(stream_id stream);
  virtual graph_id end_capture(stream_id stream);
  virtual void launch(stream_id stream, graph_id graph);
  virtual void release(graph_id graph);

  // Attention on one block: kernels/attention_block.hpp.
  virtual void forward(stream_id stream, const forward_arguments& arguments) = 0;
  /// Several blocks, none of which needs another's results, such as requests of different lengths. One call of back ends that have
  /// such a kernel, of others one a block.
  virtual void forward_each(stream_id stream, std::span<const forward_arguments> blocks);
  virtual void backward(stream_id stream, const backward_arguments& arguments) = 0;

  /// (output, lse) becomes its merge with (part, part_lse): kernels/cpu/merge.hpp.
  virtual void merge(stream_id stream, const token_shape& shape, const device_tensor& output,
                     const device_tensor& lse, const device_tensor& part,
                     const device_tensor& part_lse) = 0;

  /// output becomes its weight in the whole of `parts` times itself, whole_lse the log-sum-exp of all, of which part_lse has
  /// runs of tokens, run `own` its own: kernels/cpu/merge.hpp.
  virtual void weigh(stream_id stream, const token_shape& shape, const device_tensor& output,
                     const device_tensor& part_lse, std::int64_t parts, std::int64_t own,
                     const device_tensor& whole_lse) = 0;

  /// (output, lse) becomes its merge with `parts`-th parts of the heads' sinks: kernels/cpu/merge.hpp.
  virtual void sink(stream_id stream, const token_shape& shape, const device_tensor& output,
                    const device_tensor& lse, const device_tensor& sinks, std::int64_t parts) = 0;

  /// Keys and values of latents, key and value of one type: kernels/cpu/expand.hpp. Back ends without throw infeasible.
  virtual void expand(stream_id stream, const expand_shape& shape, const device_tensor& latent,
                      const device_tensor& expansion, const device_tensor& key,
                      const device_tensor& value);

  /// delta = <output, output_gradient> of each head of each token; both of one type.
  virtual void delta(stream_id stream, const token_shape& shape, const device_tensor& output,
                     const device_tensor& output_gradient, const device_tensor& delta) = 0;

  /// sum += part
  virtual void accumulate(stream_id stream, const token_shape& shape, const device_tensor& sum,
                          const device_tensor& part) = 0;

  /// destination = source, of any types and strides.
  virtual void cast(stream_id stream, const token_shape& shape, const device_tensor& destination,
                    const device_tensor& source) = 0;

  /// Deals `parts` consecutive runs of tokens out in turn, both of one type. The inverse has
  /// tokens / parts parts: kernels/cpu/elementwise.hpp.
  virtual void interleave(stream_id stream, const token_shape& shape, std::int64_t parts,
                          const device_tensor& destination, const device_tensor& source) = 0;

  virtual void fill(stream_id stream, const token_shape& shape, const device_tensor& destination,
                    float value) = 0;

  // The rest of a transformer's layer: kernels/layer_block.hpp. Back ends without throw infeasible.
  virtual void product(stream_id stream, const product_arguments& arguments);
  virtual void norm(stream_id stream, const norm_arguments& arguments);
  virtual void norm_gradient(stream_id stream, const norm_gradient_arguments& arguments);
  virtual void gate(stream_id stream, const gate_arguments& arguments);
  virtual void gate_gradient(stream_id stream, const gate_gradient_arguments& arguments);
  virtual void order_tokens(stream_id stream, const expert_order_arguments& arguments);
  virtual void sum_experts(stream_id stream, const expert_sum_arguments& arguments);
  virtual void sum_experts_gradient(stream_id stream,
                                    const expert_sum_gradient_arguments& arguments);
  /// Of any types and strides. `angles`: of each token the cosines, then the sines, head_dim / 2 each.
  virtual void rotate(stream_id stream, const token_shape& shape, const device_tensor& destination,
                      const device_tensor& source, const float* angles, bool back);
};

}  // namespace attnsim::kernels
