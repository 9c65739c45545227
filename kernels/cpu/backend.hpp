// The CPU as a device: kernels/backend.hpp on the kernels of this folder.
#pragma once

#include <memory>

#include "kernels/backends.hpp"
#include "kernels/cpu/stream.hpp"

namespace attnsim::kernels::cpu {

struct backend_options {
  int threads = 1;  ///< that an attention kernel spreads its heads over
  stream_kind streams = stream_kind::threaded;
};

std::unique_ptr<backend> make_backend(const backend_options& options = {});

/// kernels/backends.hpp: one thread a rank.
backend_description describe();

}  // namespace attnsim::kernels::cpu
