// An accelerator where there is none: each operation that stays on the rank takes a given time, as
// the cost model says or as was measured elsewhere, while the transport carries real messages.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "model/cost/placed_schedule.hpp"
#include "validate/executor.hpp"
#include "validate/forwarding_backend.hpp"

namespace attnsim::validate {

enum class emulation {
  none,
  waits,               ///< in place of computing: the numbers are meaningless
  computes_and_waits,  ///< computes, then waits for the rest of the time
};

/// Back end and observer of one executor.
class emulated_backend final : public forwarding_backend, public local_observer {
 public:
  /// `times`: by operation.
  emulated_backend(kernels::backend& inner, emulation, std::vector<seconds> times);

  void begin(stream_id, std::size_t op) override;
  void end(stream_id, std::size_t op) override;

  void forward(stream_id, const kernels::forward_arguments&) override;
  void forward_each(stream_id, std::span<const kernels::forward_arguments>) override;
  void backward(stream_id, const kernels::backward_arguments&) override;
  void merge(stream_id, const token_shape&, const device_tensor& output, const device_tensor& lse,
             const device_tensor& part, const device_tensor& part_lse) override;
  void weigh(stream_id, const token_shape&, const device_tensor& output,
             const device_tensor& part_lse, std::int64_t parts, std::int64_t own,
             const device_tensor& whole_lse) override;
  void sink(stream_id, const token_shape&, const device_tensor& output, const device_tensor& lse,
            const device_tensor& sinks, std::int64_t parts) override;
  void expand(stream_id, const kernels::expand_shape&, const device_tensor& latent,
              const device_tensor& expansion, const device_tensor& key,
              const device_tensor& value) override;
  void delta(stream_id, const token_shape&, const device_tensor& output,
             const device_tensor& output_gradient, const device_tensor& result) override;
  void accumulate(stream_id, const token_shape&, const device_tensor& sum,
                  const device_tensor& part) override;
  void cast(stream_id, const token_shape&, const device_tensor& destination,
            const device_tensor& source) override;
  void fill(stream_id, const token_shape&, const device_tensor& destination, float value) override;

 private:
  bool skips() const { return started_ && kind_ == emulation::waits; }

  emulation kind_;
  std::vector<seconds> times_;
  /// When the operation between begin() and end() starts on its stream.
  std::shared_ptr<std::chrono::steady_clock::time_point> started_;
};

/// What the cost model gives for each operation on `rank`. Not for several threads at once.
std::vector<seconds> local_times(const placed_schedule&, int rank);

}  // namespace attnsim::validate
