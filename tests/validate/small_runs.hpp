// Small problems run on threads, with memory that starts as NaN so that nothing unwritten is read
// unnoticed.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "kernels/cpu/backend.hpp"
#include "model/cost/memory.hpp"
#include "validate/executor.hpp"
#include "validate/forwarding_backend.hpp"
#include "validate/oracle.hpp"
#include "validate/transports/inprocess.hpp"

namespace attnsim::validate {

inline std::string label(const strategy& s, const attention& a, pass_kind pass) {
  std::string text = s.schedule + ' ' + std::to_string(s.rows) + 'x' + std::to_string(s.cols) +
                     " U=" + std::to_string(s.ulysses) + " T=" + std::to_string(s.tensor_parallel);
  for (const auto name :
       {name_of(pass), name_of(a.mask), name_of(a.dtype), name_of(s.tokens), name_of(s.order),
        name_of(s.reduction), name_of(s.partials), name_of(s.gradients)}) {
    text += ' ';
    text += name;
  }
  if (a.wire_dtype) text += " wire " + std::string(name_of(*a.wire_dtype));
  return text + " heads=" + std::to_string(a.heads) + '/' + std::to_string(a.kv_heads) + 'x' +
         std::to_string(a.head_dim) + '/' + std::to_string(a.value_dim()) +
         " window=" + std::to_string(a.window) + '+' + std::to_string(a.kept_first) +
         " batch=" + std::to_string(a.batch) + " n=" + std::to_string(a.sequence) +
         " padding=" + std::to_string(a.padding) + " prefix=" + std::to_string(a.prefix) +
         " keys=" + std::to_string(a.kv_sequence) +
         " documents=" + std::to_string(a.documents.size()) + (a.sinks ? " sinks" : "") +
         (s.keys_sent == key_form::latent ? " latents" : "") +
         " lengths=" + std::to_string(a.prefixes.size());
}

/// Fills what it allocates with NaN and counts it.
class poisoned_backend : public forwarding_backend {
 public:
  using forwarding_backend::forwarding_backend;

  void* allocate(std::size_t bytes) override {
    void* memory = inner().allocate(bytes);
    std::memset(memory, 0xff, bytes);
    held_ += sizes_[memory] = bytes;
    peak_ = std::max(peak_, held_);
    return memory;
  }
  void free(void* memory) override {
    held_ -= sizes_.at(memory);
    sizes_.erase(memory);
    inner().free(memory);
  }

  std::size_t peak() const { return peak_; }
  std::size_t held() const { return held_; }

 private:
  std::map<void*, std::size_t> sizes_;
  std::size_t held_ = 0, peak_ = 0;
};

/// Between the run and its transport or back end: what a test disturbs.
struct disturbance {
  std::function<std::unique_ptr<transport>(transport&)> of_transport;
  std::function<std::unique_ptr<kernels::backend>(kernels::backend&, int rank)> of_backend;
};

struct small_run {
  numerics numbers;
  byte_count counted_peak, reported_peak;
  std::size_t allocated_peak = 0, left = 0;  ///< of all ranks the most
  timeline times;
};

/// Forward finds each rank's own chunk only, NaN elsewhere.
inline small_run run_small(const schedule& s, const attention& a, token_layout layout,
                           const oracle& expected, const disturbance& disturb = {},
                           double time_out = 120) {
  const workload work(s, a, layout, true);
  small_run result{.counted_peak = peak_memory(work).peak};
  std::vector<tensor_error> errors;
  std::mutex mutex;
  // Most of a small run is starting its threads, and on many ranks they would only wait for cores; mpi_rank.cpp has such runs
  // with threads.
  const auto streams =
      work.ranks() > 4 ? kernels::cpu::stream_kind::immediate : kernels::cpu::stream_kind::threaded;
  run_in_process(work.ranks(), std::chrono::duration<double>(time_out), [&](transport& plain) {
    const auto cpu = kernels::cpu::make_backend({.streams = streams});
    poisoned_backend counted(*cpu);
    const auto disturbed = disturb.of_transport ? disturb.of_transport(plain) : nullptr;
    const auto slowed = disturb.of_backend ? disturb.of_backend(counted, plain.rank()) : nullptr;
    const auto inputs = [&](tensor what, const token_set& tokens, const head_range& heads,
                            data_type type) {
      auto own = expected.make(what, tokens, heads, type);
      const auto caches = work.caches();
      const bool cached = std::any_of(caches.begin(), caches.end(), [&](const operand& o) {
        return o.what == what && tokens == work.cached_tokens(plain.rank(), o);
      });
      const bool home = tokens == work.home_tokens(plain.rank(), side_of(what));
      const bool away = s.pass == pass_kind::forward && !is_parameter(what) && !home && !cached;
      if (away) std::fill(own.data.begin(), own.data.end(), std::byte{0xff});
      return own;
    };
    const auto done =
        executor(work, disturbed ? *disturbed : plain, slowed ? *slowed : counted).run(inputs);
    const auto own = expected.compare(done.results);
    const std::lock_guard lock(mutex);
    errors.insert(errors.end(), own.begin(), own.end());
    result.reported_peak = std::max(result.reported_peak, done.peak_memory);
    result.allocated_peak = std::max(result.allocated_peak, counted.peak());
    result.left += counted.held();
    if (plain.rank() == 0) result.times = done.times;
  });
  result.numbers = expected.judge(s.pass, errors);
  return result;
}

}  // namespace attnsim::validate
