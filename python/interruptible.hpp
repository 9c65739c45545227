// Long answers that Ctrl-C ends.
#pragma once

#include <atomic>
#include <chrono>
#include <future>

#include "python/bindings.hpp"

namespace attnsim::python {

/// What `work(stop)` returns, run beside a loop that lets Python handle signals ten times a second. When one of them raises,
/// KeyboardInterrupt for Ctrl-C, `stop` becomes true, on which the work is to end by any exception, and that is raised
/// instead. The GIL is held only in between.
template <typename Work>
auto interruptible(const Work& work) {
  std::atomic<bool> stop{false};
  const py::gil_scoped_release others_may_run;
  auto result = std::async(std::launch::async, [&] { return work(stop); });
  while (result.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    const py::gil_scoped_acquire python_runs;
    if (PyErr_CheckSignals() == 0) continue;
    stop = true;
    {
      const py::gil_scoped_release work_may_end;
      result.wait();
    }
    throw py::error_already_set();
  }
  return result.get();
}

}  // namespace attnsim::python
