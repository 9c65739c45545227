// Adds the result of one more block of columns to the result of the blocks so far:
//
//   L = log(exp(L_a) + exp(L_b))        O = exp(L_a - L) O_a + exp(L_b - L) O_b
//
// A side with L = -infinity has seen nothing and its O is not read: an accumulator starts with L =
// -infinity and whatever in O. The order of merges changes the result by rounding only. Ring
// Attention (arXiv 2310.01889), section 3.
#pragma once

#include "kernels/attention_block.hpp"

namespace attnsim::kernels::cpu {

/// output, lse (+)= part, part_lse. Arithmetic in fp32; any pair of storage types, an fp32
/// accumulator loses least. Errors: std::invalid_argument as check(token_shape) says.
template <typename Accumulator, typename T>
void merge(const token_shape& shape, tensor_view<Accumulator> output, tensor_view<float> lse,
           tensor_view<const T> part, tensor_view<const float> part_lse);

/// whole_lse = the log-sum-exp of all parts, output *= exp(part_lse of part `own` - whole_lse): then a sum of the parts' outputs
/// is the whole's. `part_lse` has `parts` runs of the shape's tokens, one after the other. A part that saw nothing becomes 0.
/// Errors as merge(); std::invalid_argument unless 0 <= own < parts.
template <typename T>
void weigh(const token_shape& shape, tensor_view<T> output, tensor_view<const float> part_lse,
           std::int64_t parts, std::int64_t own, tensor_view<float> whole_lse);

/// output, lse (+)= a partial of zeros whose log-sum-exp is a head's sink less log(parts): the sinks of so many parts merge to the
/// whole one. `sinks` has the form of row statistics. Errors as merge(). Precondition: parts > 0.
template <typename T>
void sink(const token_shape& shape, tensor_view<T> output, tensor_view<float> lse,
          tensor_view<const float> sinks, std::int64_t parts);

}  // namespace attnsim::kernels::cpu
