// The device memory of a layer on one rank: its parameters, what a pass keeps and what it works in. Attention has its own.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.hpp"
#include "validate/layer/layer_executor.hpp"

namespace attnsim::validate {

/// Device memory of one type, a matrix or a list.
struct area {
  std::byte* data = nullptr;
  std::int64_t elements = 0;
  data_type type = data_type::fp32;

  std::size_t bytes() const { return static_cast<std::size_t>(elements * element_bytes(type)); }
  area part(std::int64_t first, std::int64_t count) const {
    return {data + first * element_bytes(type), count, type};
  }
};

class layer_memory {
 public:
  /// All is made at once; the device is kept by reference.
  layer_memory(const layer_plan&, kernels::backend&);
  ~layer_memory();
  layer_memory(const layer_memory&) = delete;
  layer_memory& operator=(const layer_memory&) = delete;

  /// What is loaded and read. Throws std::logic_error for no tensor.
  const area& of(layer_tensor) const;

  // With experts `up`, `inner` and their gradients are of the tokens that have come to the rank's experts. `ordered`: copies of the rank's
  // tokens in the order of their experts, `received` the copies that came to its own, `put_out` what these make of them, `returned`
  // what the others made of the rank's own; likewise gradients, `ordered_gradient` of `returned` and, later, of `ordered`.
  area logits, logits_gradient, ordered, received, put_out, returned, ordered_gradient,
      received_gradient;
  area places, chosen;  ///< whole numbers of 4 bytes: kernels/layer_block.hpp
  // Of the rows that the rank norms. [0] is before attention, [1] before the MLP.
  area residual, branch, output_gradient, attention_output, mlp_output;
  area sum_gradient, input_gradient, normed_gradient;
  area sum[2], normed[2], scale[2];
  // Of all rows of the context rank; the last three only where tensor ranks have parts of them.
  area projected, projected_gradient, up, up_gradient, inner, inner_gradient;
  area gathered, gathered_gradient, parts;
  std::int64_t projected_width = 0;
  // `kept`: the shard, or the same where they are not sharded. `written_gradients`: of matrices, in the layer's type, where they are
  // written once and summed up in fp32 only behind backward; else nothing.
  area parameters, kept_parameters, gradients, kept_gradients, written_gradients;
  area angles;  ///< of each token the cosines, then the sines

 private:
  area make(std::int64_t elements, data_type);
  void make_parameters(const layer_plan&, std::int64_t count);
  void make_experts(const layer_plan&);

  kernels::backend& device_;
  std::vector<void*> held_;
};

}  // namespace attnsim::validate
