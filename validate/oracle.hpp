// What a run's numbers should be: inputs that any rank can make for itself, as each element follows
// from its tensor and its token's position in the sequence, and their attention by
// kernels/cpu/reference.hpp, on one device in fp64.
//
// A problem too large for that is checked on a sample of query tokens, evenly spaced: their outputs
// and dQ, and with d_o zero everywhere else, all of dK and dV. Padding is NaN and not checked.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cpu/reference.hpp"
#include "validate/shard.hpp"

namespace attnsim::validate {

/// How far one tensor is from the reference. Sums over elements, so parts of a tensor add up.
struct tensor_error {
  tensor what{};
  double max_error = 0;
  double max_reference = 0;
  double square_error = 0;
  double square_reference = 0;

  void add(const tensor_error&);
  /// Root mean square of the errors over that of the reference; the former where that is zero.
  double relative() const;
};

struct numerics {
  double max_error = 0;       ///< the largest of any element
  double relative_error = 0;  ///< of the worst tensor
  double tolerance =
      0;  ///< on relative_error: 1e-5 in fp32, 1e-2 in bf16 and fp16, of fp8 see oracle.cpp
  bool passed = false;  ///< also: no element off by 10 tolerances of 1 and its tensor's largest
};

class oracle {
 public:
  /// `most_work`: multiplications that the reference may take before it checks a sample.
  explicit oracle(const attention&, double most_work = 2e9);

  /// q, k, v, d_o, sinks, latents and their expansion; where no sample is taken also o and lse as forward should leave them.
  shard make(tensor, const token_set&, const head_range&, data_type) const;
  /// All heads.
  shard make(tensor, const token_set&, data_type) const;
  shard_source source() const;

  bool samples() const {
    return static_cast<std::int64_t>(rows_.size()) < problem_.sequence - problem_.padding;
  }

  /// A list that holds each result tensor once.
  std::vector<tensor_error> compare(const std::vector<shard>& results) const;
  /// Parts of all ranks. A result that no part is of has not passed.
  numerics judge(pass_kind, const std::vector<tensor_error>& parts) const;

 private:
  double input(tensor, std::int64_t batch, std::int64_t token, std::int64_t head,
               std::int64_t d) const;
  double sink_of(std::int64_t head) const;
  /// What keys and values are made of latents with, and what it makes.
  double expansion(std::int64_t head, std::int64_t d) const;
  double expanded(tensor, std::int64_t batch, std::int64_t token, std::int64_t head,
                  std::int64_t d) const;
  /// By how many tokens than the longest of a batch of several lengths.
  std::int64_t shorter(std::int64_t batch) const;
  std::vector<double> inputs(tensor, const std::vector<std::int64_t>& tokens) const;
  kernels::cpu::reference_attention sampled() const;
  const std::vector<double>& reference(tensor) const;
  std::optional<double> expected(tensor, std::int64_t batch, std::int64_t token, std::int64_t head,
                                 std::int64_t d) const;
  std::int64_t row_of(std::int64_t token) const;
  std::int64_t end(tensor) const;  ///< the first position after its tokens, without the padding
  tensor_error compare(const shard&) const;

  attention problem_;
  std::int64_t query_end_, key_end_;
  std::vector<std::int64_t> rows_, columns_;
  mutable std::once_flag forward_once_, backward_once_;
  mutable kernels::cpu::reference_output forward_;
  mutable kernels::cpu::reference_gradients backward_;
};

}  // namespace attnsim::validate
