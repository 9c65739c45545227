#include "kernels/cpu/backend.hpp"

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/argument_checks.hpp"
#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/expand.hpp"
#include "kernels/cpu/layer.hpp"
#include "kernels/cpu/merge.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/product.hpp"
#include "kernels/with_type.hpp"

namespace attnsim::kernels::cpu {
namespace {

using clock = std::chrono::steady_clock;

/// As cudaMalloc aligns.
constexpr std::align_val_t alignment{256};

template <typename T>
tensor_view<T> typed(const device_tensor& tensor) {
  const auto& view = tensor.view;
  return {static_cast<T*>(view.data), view.batch_stride, view.token_stride, view.head_stride};
}

/// Calls function(std::type_identity<T>, std::type_identity<Result>): inputs of type T, not fp8, results of T or float.
template <typename Function>
void with_result_type(data_type inputs, data_type results, const Function& function) {
  with_type(inputs, [&]<typename T>(std::type_identity<T> type) {
    if constexpr (!std::is_same_v<T, e4m3>)
      results == inputs ? function(type, type) : function(type, std::type_identity<float>{});
  });
}

/// The same of inputs in fp8.
template <typename Function>
void with_fp8_result_type(data_type results, const Function& function) {
  const std::type_identity<e4m3> inputs;
  results == data_type::bf16 ? function(inputs, std::type_identity<bf16>{})
                             : function(inputs, std::type_identity<float>{});
}

template <typename Function>
void with_types(data_type a, data_type b, const Function& function) {
  with_type(a, [&](auto type_a) { with_type(b, [&](auto type_b) { function(type_a, type_b); }); });
}

class cpu_backend final : public backend {
 public:
  explicit cpu_backend(const backend_options& options) : options_(options) {}

  std::string_view name() const override { return "cpu"; }

  void* allocate(std::size_t bytes) override { return ::operator new(bytes, alignment); }
  void free(void* memory) override { ::operator delete(memory, alignment); }
  void copy(stream_id stream, void* destination, const void* source, std::size_t bytes) override {
    call(stream, [=] { std::memcpy(destination, source, bytes); });
  }

  using backend::create_stream;
  stream_id create_stream(stream_priority) override {
    streams_.push_back(std::make_unique<cpu::stream>(options_.streams));
    return stream_id(streams_.size() - 1);
  }
  void call(stream_id stream, std::function<void()> function) override {
    at(stream).enqueue(std::move(function));
  }
  void synchronize(stream_id stream) override { at(stream).synchronize(); }
  void* native_stream(stream_id) override { return nullptr; }

  event_id record(stream_id stream) override {
    const auto passed = std::make_shared<std::promise<clock::time_point>>();
    const event_id event{next_event_++};
    events_.emplace(event, passed->get_future());
    call(stream, [passed] { passed->set_value(clock::now()); });
    return event;
  }
  void wait(stream_id stream, event_id event) override {
    call(stream, [passed = at(event)] { passed.wait(); });
  }
  double seconds_between(event_id from, event_id to) override {
    return std::chrono::duration<double>(at(to).get() - at(from).get()).count();
  }
  void release(event_id event) override { events_.erase(event); }

  void forward(stream_id stream, const forward_arguments& arguments) override;
  void forward_each(stream_id stream, std::span<const forward_arguments> blocks) override;
  void backward(stream_id stream, const backward_arguments& arguments) override;
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
  void order_tokens(stream_id stream, const expert_order_arguments& arguments) override;
  void sum_experts(stream_id stream, const expert_sum_arguments& arguments) override;
  void sum_experts_gradient(stream_id stream,
                            const expert_sum_gradient_arguments& arguments) override;
  void rotate(stream_id stream, const token_shape& shape, const device_tensor& destination,
              const device_tensor& source, const float* angles, bool back) override;

 private:
  cpu::stream& at(stream_id stream) { return *streams_.at(std::size_t(stream)); }
  std::shared_future<clock::time_point> at(event_id event) const { return events_.at(event); }

  backend_options options_;
  std::unordered_map<event_id, std::shared_future<clock::time_point>> events_;
  std::int32_t next_event_ = 0;
  std::vector<std::unique_ptr<cpu::stream>> streams_;
};

void run_forward(const forward_arguments& a, int threads) {
  const auto run = [&]<typename T, typename R>(std::type_identity<T>, std::type_identity<R>) {
    attention_forward(a.shape, typed<const T>(a.query), typed<const T>(a.key),
                      typed<const T>(a.value), typed<R>(a.output), typed<float>(a.lse), threads);
  };
  a.query.type == data_type::fp8 ? with_fp8_result_type(a.output.type, run)
                                 : with_result_type(a.query.type, a.output.type, run);
}

void cpu_backend::forward(stream_id stream, const forward_arguments& arguments) {
  check(arguments);
  call(stream, [a = arguments, threads = options_.threads] { run_forward(a, threads); });
}

void cpu_backend::forward_each(stream_id stream, std::span<const forward_arguments> blocks) {
  for (const auto& one : blocks) check(one);
  call(stream, [all = std::vector(blocks.begin(), blocks.end()), threads = options_.threads] {
    parallel_for(std::ssize(all), threads,
                 [&](std::int64_t i) { run_forward(all[static_cast<std::size_t>(i)], 1); });
  });
}

void cpu_backend::backward(stream_id stream, const backward_arguments& arguments) {
  check(arguments);
  call(stream, [a = arguments, threads = options_.threads] {
    const auto run = [&]<typename T, typename R>(std::type_identity<T>, std::type_identity<R>) {
      attention_backward(a.shape, typed<const T>(a.query), typed<const T>(a.key),
                         typed<const T>(a.value), typed<const gradient_of<T>>(a.output_gradient),
                         typed<const float>(a.lse), typed<const float>(a.delta),
                         typed<R>(a.query_gradient), typed<R>(a.key_gradient),
                         typed<R>(a.value_gradient), threads);
    };
    a.query.type == data_type::fp8 ? with_fp8_result_type(a.query_gradient.type, run)
                                   : with_result_type(a.query.type, a.query_gradient.type, run);
  });
}

void cpu_backend::merge(stream_id stream, const token_shape& shape, const device_tensor& output,
                        const device_tensor& lse, const device_tensor& part,
                        const device_tensor& part_lse) {
  check_merge(shape, lse, part_lse);
  call(stream, [=] {
    with_types(output.type, part.type,
               [&]<typename A, typename T>(std::type_identity<A>, std::type_identity<T>) {
                 cpu::merge(shape, typed<A>(output), typed<float>(lse), typed<const T>(part),
                            typed<const float>(part_lse));
               });
  });
}

void cpu_backend::weigh(stream_id stream, const token_shape& shape, const device_tensor& output,
                        const device_tensor& part_lse, std::int64_t parts, std::int64_t own,
                        const device_tensor& whole_lse) {
  check_weigh(shape, part_lse, parts, own, whole_lse);
  call(stream, [=] {
    with_type(output.type, [&]<typename T>(std::type_identity<T>) {
      cpu::weigh(shape, typed<T>(output), typed<const float>(part_lse), parts, own,
                 typed<float>(whole_lse));
    });
  });
}

void cpu_backend::sink(stream_id stream, const token_shape& shape, const device_tensor& output,
                       const device_tensor& lse, const device_tensor& sinks, std::int64_t parts) {
  check_sink(shape, lse, sinks, parts);
  call(stream, [=] {
    with_type(output.type, [&]<typename T>(std::type_identity<T>) {
      cpu::sink(shape, typed<T>(output), typed<float>(lse), typed<const float>(sinks), parts);
    });
  });
}

void cpu_backend::expand(stream_id stream, const expand_shape& shape, const device_tensor& latent,
                         const device_tensor& expansion, const device_tensor& key,
                         const device_tensor& value) {
  check(shape);
  call(stream, [=] {
    with_types(latent.type, key.type,
               [&]<typename T, typename E>(std::type_identity<T>, std::type_identity<E>) {
                 cpu::expand(shape, typed<const T>(latent), typed<const T>(expansion),
                             typed<E>(key), typed<E>(value));
               });
  });
}

void cpu_backend::delta(stream_id stream, const token_shape& shape, const device_tensor& output,
                        const device_tensor& output_gradient, const device_tensor& delta) {
  check_delta(shape, output, output_gradient, delta);
  call(stream, [=] {
    with_type(output.type, [&]<typename T>(std::type_identity<T>) {
      attention_delta(shape, typed<const T>(output), typed<const T>(output_gradient),
                      typed<float>(delta));
    });
  });
}

void cpu_backend::accumulate(stream_id stream, const token_shape& shape, const device_tensor& sum,
                             const device_tensor& part) {
  check(shape);
  call(stream, [=] {
    with_types(sum.type, part.type,
               [&]<typename A, typename T>(std::type_identity<A>, std::type_identity<T>) {
                 cpu::accumulate(shape, typed<A>(sum), typed<const T>(part));
               });
  });
}

void cpu_backend::cast(stream_id stream, const token_shape& shape, const device_tensor& destination,
                       const device_tensor& source) {
  check(shape);
  call(stream, [=] {
    with_types(destination.type, source.type,
               [&]<typename To, typename From>(std::type_identity<To>, std::type_identity<From>) {
                 cpu::cast(shape, typed<To>(destination), typed<const From>(source));
               });
  });
}

void cpu_backend::interleave(stream_id stream, const token_shape& shape, std::int64_t parts,
                             const device_tensor& destination, const device_tensor& source) {
  check_interleave(shape, parts, destination, source);
  call(stream, [=] {
    with_type(source.type, [&]<typename T>(std::type_identity<T>) {
      cpu::interleave(shape, parts, typed<T>(destination), typed<const T>(source));
    });
  });
}

void cpu_backend::fill(stream_id stream, const token_shape& shape, const device_tensor& destination,
                       float value) {
  check(shape);
  call(stream, [=] {
    with_type(destination.type, [&]<typename T>(std::type_identity<T>) {
      cpu::fill(shape, typed<T>(destination), value);
    });
  });
}

void cpu_backend::product(stream_id stream, const product_arguments& a) {
  check(a);
  call(stream, [a] { cpu::product(a); });
}
void cpu_backend::norm(stream_id stream, const norm_arguments& a) {
  check(a);
  call(stream, [a] { cpu::norm(a); });
}
void cpu_backend::norm_gradient(stream_id stream, const norm_gradient_arguments& a) {
  check(a);
  call(stream, [a] { cpu::norm_gradient(a); });
}
void cpu_backend::gate(stream_id stream, const gate_arguments& a) {
  check(a);
  call(stream, [a] { cpu::gate(a); });
}
void cpu_backend::gate_gradient(stream_id stream, const gate_gradient_arguments& a) {
  check(a);
  call(stream, [a] { cpu::gate_gradient(a); });
}
void cpu_backend::order_tokens(stream_id stream, const expert_order_arguments& a) {
  check(a);
  call(stream, [a] { cpu::order_tokens(a); });
}
void cpu_backend::sum_experts(stream_id stream, const expert_sum_arguments& a) {
  check(a);
  call(stream, [a] { cpu::sum_experts(a); });
}
void cpu_backend::sum_experts_gradient(stream_id stream, const expert_sum_gradient_arguments& a) {
  check(a);
  call(stream, [a] { cpu::sum_experts_gradient(a); });
}

void cpu_backend::rotate(stream_id stream, const token_shape& shape,
                         const device_tensor& destination, const device_tensor& source,
                         const float* angles, bool back) {
  check_rotation(shape);
  call(stream, [=] {
    with_types(destination.type, source.type,
               [&]<typename To, typename From>(std::type_identity<To>, std::type_identity<From>) {
                 cpu::rotate(shape, typed<To>(destination), typed<const From>(source), angles,
                             back);
               });
  });
}

}  // namespace

std::unique_ptr<backend> make_backend(const backend_options& options) {
  return std::make_unique<cpu_backend>(options);
}

backend_description describe() {
  return {.name = "cpu",
          .profile_kernel = "cpu",
          .transports = {"inprocess", "mpi"},
          .on_host = true,
          .make = [](const device_options&) { return make_backend(); }};
}

}  // namespace attnsim::kernels::cpu
