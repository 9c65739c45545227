// The parameters of a Llama or Mixtral layer on one rank, one behind the other; each matrix has an output a row.
//
// T tensor ranks, h hidden, q, k, v widths of queries, keys and values, f of the MLP, n experts, E ranks that share them:
//   projections   (q + k + v) / T x h    its heads' queries, then keys, then values
//   output        h x q / T
//   up            2 f / T x h            the gate's, then what it multiplies
//   down          h x f / T
//   with experts, in place of up and down:
//   router        n x h                  the same on all
//   experts up    n / E 2 f x h          of one expert after the other, as up
//   experts down  n / E h x f
//   norms         h and h, the same on all
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/layer/layer.hpp"

namespace attnsim::validate {

enum class parameter {
  projections,
  output,
  up,
  down,
  router,
  experts_up,
  experts_down,
  attention_norm,
  mlp_norm
};
inline constexpr std::array all_parameters{
    parameter::projections,  parameter::output,         parameter::up,
    parameter::down,         parameter::router,         parameter::experts_up,
    parameter::experts_down, parameter::attention_norm, parameter::mlp_norm};
std::string_view name_of(parameter);
constexpr bool is_norm(parameter p) {
  return p == parameter::attention_norm || p == parameter::mlp_norm;
}

struct parameter_block {
  std::int64_t first = 0;  ///< its first element among all
  std::int64_t rows = 0, cols = 0;

  std::int64_t elements() const { return rows * cols; }
};

/// Where an element of a rank's block is in the whole layer's.
struct parameter_place {
  std::int64_t row = 0, col = 0;
};

class parameter_layout {
 public:
  explicit parameter_layout(const layer_setting&);

  /// Empty where the layer has none.
  const parameter_block& of(parameter p) const { return blocks_[static_cast<std::size_t>(p)]; }
  std::int64_t elements() const { return elements_; }
  /// `rank`: of those of a stage.
  parameter_place in_layer(parameter, int rank, std::int64_t row, std::int64_t col) const;

 private:
  std::array<parameter_block, all_parameters.size()> blocks_;
  std::int64_t elements_ = 0;
  std::int64_t query_, key_, value_, inner_;  ///< of a rank
  int ranks_;                                 ///< tensor ranks
  int expert_ranks_;                          ///< that share the experts
};

}  // namespace attnsim::validate
