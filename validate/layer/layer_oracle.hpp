// What a layer's numbers should be: inputs that any rank can make for itself, and their layer by reference_layer.hpp, one for each
// data-parallel replica, whose parameters' gradients add up.
#pragma once

#include <string_view>
#include <vector>

#include "validate/layer/layer_executor.hpp"
#include "validate/layer/reference_layer.hpp"

namespace attnsim::validate {

struct layer_error {
  std::string_view what;
  double relative = 0;  ///< root mean square of the errors over that of the reference
};

struct layer_numerics {
  std::vector<layer_error> errors;  ///< outputs, the input's gradient, and those of all parameters
  double tolerance = 0;             ///< 2e-2 in bf16 and fp16, 2e-5 in fp32
  bool passed = false;

  double relative_error() const;  ///< the largest
};

class layer_oracle {
 public:
  /// The plan is kept by reference. `most_work`: multiplications that the reference may take; infeasible for a layer that takes more.
  explicit layer_oracle(const layer_plan&, double most_work = 2e10);

  /// Inputs and parameters.
  void load(layer_executor&, const transport&) const;

  /// After forward and backward; all ranks call it and get the same.
  layer_numerics check(const layer_executor&, transport&) const;

 private:
  float input(layer_tensor, int data_rank, std::int64_t position, std::int64_t batch,
              std::int64_t k) const;
  float weight(parameter, std::int64_t row, std::int64_t col) const;
  std::vector<float> activations(layer_tensor, const layer_executor&) const;
  std::vector<float> parameters(const layer_executor&, const transport&) const;
  reference_input whole(int data_rank) const;
  layer_error compare_rows(std::string_view what, const std::vector<float>& own,
                           const numbers& expected, const layer_executor&, transport&) const;
  std::vector<layer_error> compare_gradients(const std::vector<float>& own, transport&) const;

  const layer_plan& plan_;
  parameter_layout layout_, whole_layout_;
  std::vector<reference_result> expected_;  ///< by data rank
};

}  // namespace attnsim::validate
