// A back end that is another one in all it doesn't override: what decorators derive from.
#pragma once

#include "kernels/backend.hpp"

namespace attnsim::validate {

class forwarding_backend : public kernels::backend {
 protected:
  using stream_id = kernels::stream_id;
  using event_id = kernels::event_id;
  using token_shape = kernels::token_shape;
  using device_tensor = kernels::device_tensor;

 public:
  /// Keeps the reference.
  explicit forwarding_backend(kernels::backend& inner) : inner_(inner) {}

  std::string_view name() const override { return inner_.name(); }
  void* allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  void free(void* memory) override { inner_.free(memory); }
  void copy(stream_id s, void* destination, const void* source, std::size_t bytes) override {
    inner_.copy(s, destination, source, bytes);
  }
  using backend::create_stream;
  stream_id create_stream(kernels::stream_priority p) override { return inner_.create_stream(p); }
  void call(stream_id s, std::function<void()> f) override { inner_.call(s, std::move(f)); }
  void synchronize(stream_id s) override { inner_.synchronize(s); }
  void* native_stream(stream_id s) override { return inner_.native_stream(s); }
  event_id record(stream_id s) override { return inner_.record(s); }
  void wait(stream_id s, event_id e) override { inner_.wait(s, e); }
  double seconds_between(event_id from, event_id to) override {
    return inner_.seconds_between(from, to);
  }
  void release(event_id e) override { inner_.release(e); }
  void begin_capture(stream_id s) override { inner_.begin_capture(s); }
  kernels::graph_id end_capture(stream_id s) override { return inner_.end_capture(s); }
  void launch(stream_id s, kernels::graph_id g) override { inner_.launch(s, g); }
  void release(kernels::graph_id g) override { inner_.release(g); }

  void forward(stream_id s, const kernels::forward_arguments& a) override { inner_.forward(s, a); }
  void forward_each(stream_id s, std::span<const kernels::forward_arguments> blocks) override {
    inner_.forward_each(s, blocks);
  }
  void backward(stream_id s, const kernels::backward_arguments& a) override {
    inner_.backward(s, a);
  }
  void merge(stream_id s, const token_shape& shape, const device_tensor& output,
             const device_tensor& lse, const device_tensor& part,
             const device_tensor& part_lse) override {
    inner_.merge(s, shape, output, lse, part, part_lse);
  }
  void weigh(stream_id s, const token_shape& shape, const device_tensor& output,
             const device_tensor& part_lse, std::int64_t parts, std::int64_t own,
             const device_tensor& whole_lse) override {
    inner_.weigh(s, shape, output, part_lse, parts, own, whole_lse);
  }
  void sink(stream_id s, const token_shape& shape, const device_tensor& output,
            const device_tensor& lse, const device_tensor& sinks, std::int64_t parts) override {
    inner_.sink(s, shape, output, lse, sinks, parts);
  }
  void expand(stream_id s, const kernels::expand_shape& shape, const device_tensor& latent,
              const device_tensor& expansion, const device_tensor& key,
              const device_tensor& value) override {
    inner_.expand(s, shape, latent, expansion, key, value);
  }
  void delta(stream_id s, const token_shape& shape, const device_tensor& output,
             const device_tensor& output_gradient, const device_tensor& result) override {
    inner_.delta(s, shape, output, output_gradient, result);
  }
  void accumulate(stream_id s, const token_shape& shape, const device_tensor& sum,
                  const device_tensor& part) override {
    inner_.accumulate(s, shape, sum, part);
  }
  void cast(stream_id s, const token_shape& shape, const device_tensor& destination,
            const device_tensor& source) override {
    inner_.cast(s, shape, destination, source);
  }
  void interleave(stream_id s, const token_shape& shape, std::int64_t parts,
                  const device_tensor& destination, const device_tensor& source) override {
    inner_.interleave(s, shape, parts, destination, source);
  }
  void fill(stream_id s, const token_shape& shape, const device_tensor& destination,
            float value) override {
    inner_.fill(s, shape, destination, value);
  }

  void product(stream_id s, const kernels::product_arguments& a) override { inner_.product(s, a); }
  void norm(stream_id s, const kernels::norm_arguments& a) override { inner_.norm(s, a); }
  void norm_gradient(stream_id s, const kernels::norm_gradient_arguments& a) override {
    inner_.norm_gradient(s, a);
  }
  void gate(stream_id s, const kernels::gate_arguments& a) override { inner_.gate(s, a); }
  void gate_gradient(stream_id s, const kernels::gate_gradient_arguments& a) override {
    inner_.gate_gradient(s, a);
  }
  void order_tokens(stream_id s, const kernels::expert_order_arguments& a) override {
    inner_.order_tokens(s, a);
  }
  void sum_experts(stream_id s, const kernels::expert_sum_arguments& a) override {
    inner_.sum_experts(s, a);
  }
  void sum_experts_gradient(stream_id s, const kernels::expert_sum_gradient_arguments& a) override {
    inner_.sum_experts_gradient(s, a);
  }
  void rotate(stream_id s, const token_shape& shape, const device_tensor& destination,
              const device_tensor& source, const float* angles, bool back) override {
    inner_.rotate(s, shape, destination, source, angles, back);
  }

 protected:
  kernels::backend& inner() { return inner_; }

 private:
  kernels::backend& inner_;
};

}  // namespace attnsim::validate
