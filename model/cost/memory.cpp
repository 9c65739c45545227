#include "model/cost/memory.hpp"

#include <algorithm>
#include <limits>

namespace attnsim {
namespace {

void add(std::vector<buffers_in_use>& list, const buffer& b, byte_count bytes) {
  const auto alike = [&](const buffers_in_use& u) {
    return u.what == b.what && u.format == b.format && u.each == bytes;
  };
  auto found = std::find_if(list.begin(), list.end(), alike);
  if (found == list.end())
    found = list.insert(found, {.what = b.what, .format = b.format, .each = bytes});
  ++found->count;
}

/// Where heads are exchanged the share of the whole group's tokens, not the chunk that it came from.
byte_count kept(const workload& w, tensor what) {
  byte_count most;
  for (const auto& b : w.program().buffers) {
    if (b.resident && b.what == what) most = std::max(most, w.bytes(b));
  }
  return most;
}

}  // namespace

memory_use peak_memory(const workload& w) {
  const auto& s = w.program();
  memory_use use{.cache = kept(w, tensor::k) + kept(w, tensor::v), .scratch = w.scratch_bytes()};
  if (use.cache == byte_count()) use.cache = kept(w, tensor::latent);
  constexpr auto never = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> first(s.buffers.size(), never), last(s.buffers.size(), 0);
  for (std::size_t i = 0; i < s.program.size(); ++i) {
    for (const auto* list : {&s.program[i].reads, &s.program[i].writes}) {
      for (const auto& o : *list) {
        const auto b = static_cast<std::size_t>(o.buffer);
        if (first[b] == never) first[b] = i;
        last[b] = i;
      }
    }
  }
  std::vector<std::int64_t> change(s.program.size() + 1);
  for (std::size_t b = 0; b < s.buffers.size(); ++b) {
    const auto size = w.bytes(s.buffers[b]);
    if (s.buffers[b].resident) {
      use.resident += size;
    } else if (first[b] != never) {
      change[first[b]] += size.value();
      change[last[b] + 1] -= size.value();
    }
  }
  std::int64_t live = 0;
  std::size_t peak_at = 0;
  for (std::size_t i = 0; i < s.program.size(); ++i) {
    live += change[i];
    if (byte_count(live) > use.working) use.working = byte_count(live), peak_at = i;
  }
  for (std::size_t b = 0; b < s.buffers.size(); ++b) {
    if (!s.buffers[b].resident && first[b] <= peak_at && peak_at <= last[b])
      add(use.at_peak, s.buffers[b], w.bytes(s.buffers[b]));
  }
  use.peak = use.resident + use.working + use.scratch;
  return use;
}

}  // namespace attnsim
