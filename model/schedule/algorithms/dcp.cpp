// Decode context parallelism of vLLM: T x R tensor-parallel ranks for T K/V heads or groups of them; R ranks that would hold
// copies of the same K/V heads hold every R-th token instead. They gather their queries, and outputs go back by log-sum-exps
// that all gather and a reduce-scatter.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {

algorithm describe_dcp() {
  return decoding<query_heads::gathered, output_exchange::weighed_sum>(
      "dcp",
      "decodes: ranks gather queries, weigh partial outputs by gathered statistics, and "
      "sum them",
      "vLLM, decode context parallel: all-gather and reduce-scatter");
}

}  // namespace attnsim
