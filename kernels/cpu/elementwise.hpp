// What a schedule does to tensors besides attention, element by element. Arithmetic is fp32; every
// combination of storage types is there. Tensors may be any strided views; only accumulate reads
// what it writes. Errors: std::invalid_argument as check(token_shape) says.
#pragma once

#include "kernels/attention_block.hpp"

namespace attnsim::kernels::cpu {

/// delta(b, t, h) = sum_d output * output_gradient, the last term of dS; output is that of the
/// whole rows.
template <typename T>
void attention_delta(const token_shape& shape, tensor_view<const T> output,
                     tensor_view<const T> output_gradient, tensor_view<float> delta);

/// sum += part
template <typename Sum, typename T>
void accumulate(const token_shape& shape, tensor_view<Sum> sum, tensor_view<const T> part);

/// destination = source, converted; with equal types a strided copy.
template <typename To, typename From>
void cast(const token_shape& shape, tensor_view<To> destination, tensor_view<const From> source);

template <typename T>
void fill(const token_shape& shape, tensor_view<T> destination, float value);

/// Deals `parts` consecutive runs of tokens out in turn: with n = tokens / parts, destination token
/// t * parts + p is source token p * n + t. Its inverse is interleave with n parts.
/// Also refuses parts that don't divide the tokens.
template <typename T>
void interleave(const token_shape& shape, std::int64_t parts, tensor_view<T> destination,
                tensor_view<const T> source);

}  // namespace attnsim::kernels::cpu
