// DeepSpeed-Ulysses (arXiv 2309.14509): all ranks exchange tokens for heads (head_exchange.cpp), and each attends with its
// heads to all tokens.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

std::string one_place(const strategy& s, const attention&) {
  return s.rows == 1 && s.cols == 1 ? "" : "has all ranks in one exchange of heads, grid 1x1";
}

}  // namespace

algorithm describe_ulysses() {
  return {.name = "ulysses",
          .summary = "ranks exchange tokens for heads, attend all tokens, exchange back",
          .source = "arXiv 2309.14509",
          .generate = ring,
          .refusal = one_place,
          .sends = ring_volume,
          .heads = algorithm::exchange::all_ranks,
          .sends_gradients = false,
          .merges = false,
          .tokens = token_layout::contiguous};
}

}  // namespace attnsim
