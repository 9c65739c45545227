// What every back end refuses before it enqueues an operation: bad shapes
// (kernels/attention_block.hpp) and types that don't go together. Each throws std::invalid_argument
// "OPERATION: ARGUMENT is TYPE, expected TYPE".
#pragma once

#include "kernels/backend.hpp"

namespace attnsim::kernels {

void check(const forward_arguments& arguments);
void check(const backward_arguments& arguments);
void check_merge(const token_shape& shape, const device_tensor& lse, const device_tensor& part_lse);
void check_weigh(const token_shape& shape, const device_tensor& part_lse, std::int64_t parts,
                 std::int64_t own, const device_tensor& whole_lse);
void check_sink(const token_shape& shape, const device_tensor& lse, const device_tensor& sinks,
                std::int64_t parts);
void check_delta(const token_shape& shape, const device_tensor& output,
                 const device_tensor& output_gradient, const device_tensor& delta);

/// Also refuses parts that don't divide the tokens.
void check_interleave(const token_shape& shape, std::int64_t parts,
                      const device_tensor& destination, const device_tensor& source);

}  // namespace attnsim::kernels
