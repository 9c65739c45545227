// A Llama or Mixtral layer on one device in fp64, straight from its definition: plain loops over matrices, attention by
// kernels/cpu/reference.hpp. It shares no code with what it checks.
//
//   x0 = residual + branch           q, k, v = norm(x0) W1^T, q and k turned by their positions
//   x1 = x0 + attention(q, k, v) W2^T
//   m  = (silu(g) u) W4^T            g, u = norm(x1) W3^T
//        with experts sum over a token's of w_e (silu(g) u) W4e^T, g, u = norm(x1) W3e^T, w the softmax of norm(x1) Wr^T over the token's;
//        they are dealt out in turn: the j-th of row i is (i active + j) mod experts
// Backward goes from the gradient of x1 + m to those of x0 and of all parameters.
//
// Rows are [token][batch], tokens in the order of their positions from 0 on; matrices have an output a row.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/layer/transformer.hpp"
#include "validate/layer/parameters.hpp"

namespace attnsim::validate {

/// Turns of Llama 3's rotary embedding.
inline constexpr double rotary_base = 500000;

using numbers = std::vector<double>;

struct reference_input {
  const transformer& model;
  std::int64_t tokens = 0, batch = 1;
  bool causal = true;
  numbers residual, branch, output_gradient;                ///< tokens x batch, hidden
  std::array<numbers, all_parameters.size()> parameters{};  ///< by parameter, of the whole layer
};

struct reference_result {
  numbers attention_sum;   ///< x1
  numbers mlp_output;      ///< m
  numbers input_gradient;  ///< of x0
  std::array<numbers, all_parameters.size()> parameter_gradients;
};

reference_result reference_layer(const reference_input&);

}  // namespace attnsim::validate
