// Forward attention of few query rows against many keys (decoding, a few new tokens behind a long prefix), on sm_80 and later.
//
// All query heads of a K/V head share tiles of 16 or 32 rows, so that keys are read once for all of them, and keys are split so
// that thread blocks fill the device; where they are, a second kernel combines what the splits found (flash-decoding, Dao et al.
// 2023). Arguments, masks and errors as kernels/cuda/attention.hpp; besides:
//
//   head_dim   64, 128; and, which have no other kernel here and so come with any number of rows, 192 with values of 128, and
//              576 whose first 512 elements are the values (one tensor: absorbed latents)
//   workspace  what the splits found, in fp32: decode_workspace() bytes, 256-byte aligned
//   blocks     one, or several of other lengths, masks and addresses (requests of a batch): one call splits them so that together
//              they fill the device
#pragma once

#include <span>

#include "kernels/cuda/attention.hpp"

namespace attnsim::kernels::cuda {

/// Whether there is a kernel for heads of these dimensions.
bool decode_available(const block_shape& shape);

/// Whether it is the one to take: rows are so few that the tiles of forward(), of one head each, would leave most of the device
/// idle or mostly be empty; or forward() has none for these dimensions.
bool prefers_decode(const block_shape& shape);

/// Whether blocks differ in nothing but addresses, batch, rows, columns and mask, and so may be those of one call.
bool decode_alike(const forward_arguments& a, const forward_arguments& b);

std::size_t decode_workspace(std::span<const forward_arguments> blocks);

void decode(std::span<const forward_arguments> blocks, void* workspace, stream queue);

inline std::size_t decode_workspace(const forward_arguments& block) {
  return decode_workspace(std::span(&block, 1));
}
inline void decode(const forward_arguments& block, void* workspace, stream queue) {
  decode(std::span(&block, 1), workspace, queue);
}

}  // namespace attnsim::kernels::cuda
