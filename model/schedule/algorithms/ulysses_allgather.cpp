// Ulysses within groups, keys gathered between them: for head counts that do not divide over all ranks, but over the ranks of a
// group. 14 heads on 4 ranks are 7 on each of 2 groups of 2, where Ulysses alone leaves one rank with 4 of 14. It is Attention2D
// with one column around which heads are exchanged.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
algorithm describe_ulysses_allgather() {
  return {.name = "ulysses-allgather",
          .summary = "Ulysses within groups, all keys and values gathered between them (vLLM-Omni)",
          .source = "vllm-omni, issue 7589",
          .generate = attention2d,
          .refusal = one_column,
          .sends = attention2d_volume,
          .heads = algorithm::exchange::usual};
}

}  // namespace attnsim
