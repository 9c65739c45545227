#include "validate/emulated_backend.hpp"

#include <sys/prctl.h>

#include <thread>

namespace attnsim::validate {

using std::chrono::steady_clock;

emulated_backend::emulated_backend(kernels::backend& inner, emulation kind,
                                   std::vector<seconds> times)
    : forwarding_backend(inner), kind_(kind), times_(std::move(times)) {}

void emulated_backend::begin(stream_id stream, std::size_t) {
  started_ = std::make_shared<steady_clock::time_point>();
  call(stream, [started = started_] { *started = steady_clock::now(); });
}

void emulated_backend::end(stream_id stream, std::size_t op) {
  const auto time = std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(times_.at(op).value()));
  call(stream, [started = std::move(started_), time] {
    prctl(PR_SET_TIMERSLACK, 1);  // in ns; by default the kernel is up to 50 us late
    std::this_thread::sleep_until(*started + time);
  });
  started_ = nullptr;
}

void emulated_backend::forward(stream_id s, const kernels::forward_arguments& a) {
  if (!skips()) inner().forward(s, a);
}

void emulated_backend::forward_each(stream_id s,
                                    std::span<const kernels::forward_arguments> blocks) {
  if (!skips()) inner().forward_each(s, blocks);
}

void emulated_backend::backward(stream_id s, const kernels::backward_arguments& a) {
  if (!skips()) inner().backward(s, a);
}

void emulated_backend::merge(stream_id s, const token_shape& shape, const device_tensor& output,
                             const device_tensor& lse, const device_tensor& part,
                             const device_tensor& part_lse) {
  if (!skips()) inner().merge(s, shape, output, lse, part, part_lse);
}

void emulated_backend::weigh(stream_id s, const token_shape& shape, const device_tensor& output,
                             const device_tensor& part_lse, std::int64_t parts, std::int64_t own,
                             const device_tensor& whole_lse) {
  if (!skips()) inner().weigh(s, shape, output, part_lse, parts, own, whole_lse);
}

void emulated_backend::expand(stream_id s, const kernels::expand_shape& shape,
                              const device_tensor& latent, const device_tensor& expansion,
                              const device_tensor& key, const device_tensor& value) {
  if (!skips()) inner().expand(s, shape, latent, expansion, key, value);
}

void emulated_backend::sink(stream_id s, const token_shape& shape, const device_tensor& output,
                            const device_tensor& lse, const device_tensor& sinks,
                            std::int64_t parts) {
  if (!skips()) inner().sink(s, shape, output, lse, sinks, parts);
}

void emulated_backend::delta(stream_id s, const token_shape& shape, const device_tensor& output,
                             const device_tensor& output_gradient, const device_tensor& result) {
  if (!skips()) inner().delta(s, shape, output, output_gradient, result);
}

void emulated_backend::accumulate(stream_id s, const token_shape& shape, const device_tensor& sum,
                                  const device_tensor& part) {
  if (!skips()) inner().accumulate(s, shape, sum, part);
}

void emulated_backend::cast(stream_id s, const token_shape& shape, const device_tensor& destination,
                            const device_tensor& source) {
  if (!skips()) inner().cast(s, shape, destination, source);
}

void emulated_backend::fill(stream_id s, const token_shape& shape, const device_tensor& destination,
                            float value) {
  if (!skips()) inner().fill(s, shape, destination, value);
}

std::vector<seconds> local_times(const placed_schedule& i, int rank) {
  std::vector<seconds> times;
  for (std::size_t op = 0; op < i.program().program.size(); ++op) {
    times.push_back(i.costs().time(op, rank) / i.speed_of(rank));
  }
  return times;
}

}  // namespace attnsim::validate
