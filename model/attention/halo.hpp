// The tokens before a rank's own that its queries see through a sliding window: with consecutive tokens on every rank those of
// the nearest ranks before it, whole chunks and the last tokens of one more.
#pragma once

#include <cstdint>

#include "model/attention/attention.hpp"

namespace attnsim {

struct halo {
  std::int64_t chunks = 0;  ///< that are seen whole, at most all before the last one
  std::int64_t tail = 0;    ///< last tokens of the chunk before those

  /// How many chunks it is spread over.
  std::int64_t reach() const { return chunks + (tail > 0 ? 1 : 0); }

  friend bool operator==(const halo&, const halo&) = default;
};

/// Of the last of `chunks` equal chunks, which sees most: window - 1 tokens. Nothing without a window.
halo halo_of(const attention&, std::int64_t chunks);

}  // namespace attnsim
