// A rank's part of a tensor in host memory, and how buffers lie in device memory.
//
// Everywhere in validate/ a tensor is dense, [token][batch][head][d]: then the chunks of a gathered
// buffer, each contiguous for a transport, together are one tensor for a kernel.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/backend.hpp"
#include "model/cost/workload.hpp"

namespace attnsim::validate {

struct shard {
  tensor what{};
  token_set tokens;
  head_range heads;
  data_type type = data_type::fp32;
  std::vector<std::byte> data;
};

/// Makes the shard of a tensor that has these tokens and heads, in this type.
using shard_source = std::function<shard(tensor, const token_set&, const head_range&, data_type)>;

/// The tensor's heads among these: key heads for K, V and their gradients, else query heads.
std::int64_t head_count(tensor, const head_range&);
std::int64_t first_head(tensor, const head_range&);

/// The shape of `tokens` tokens of a tensor; row statistics have head_dim 1.
kernels::token_shape shape_of(const attention&, tensor, std::int64_t heads, std::int64_t tokens);

/// The tensor that starts at `data`, with room for shape.heads heads a token.
kernels::device_tensor placed(void* data, data_type type, const kernels::token_shape&);

/// The same from head `first` on.
kernels::device_tensor heads_from(kernels::device_tensor, std::int64_t first);

/// The type of a tensor's elements in a buffer of this format.
data_type type_of(const attention&, tensor, precision);

}  // namespace attnsim::validate
