// Decode context parallelism of vLLM: T x R tensor-parallel ranks for T K/V heads or groups of them; R ranks that would hold
// copies of the same K/V heads hold every R-th token instead. They gather their queries, and outputs go back by log-sum-exps
// that all gather and a reduce-scatter.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule dcp_program(const strategy& s, const attention&, pass_kind) {
  return cache_shards(s, query_heads::gathered, output_exchange::weighed_sum);
}

volume dcp_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  return cache_shards_volume(s, b, query_heads::gathered, output_exchange::weighed_sum);
}

}  // namespace

algorithm describe_dcp() {
  return {.name = "dcp",
          .summary =
              "decodes: ranks gather queries, weigh partial outputs by gathered statistics, and "
              "sum them",
          .source = "vLLM, decode context parallel: all-gather and reduce-scatter",
          .generate = dcp_program,
          .refusal = sharing_outputs,
          .sends = dcp_volume,
          .sends_partials = true,
          .sends_gradients = false,
          .whole_queries = true,
          .for_more_keys = true,
          .tokens = token_layout::striped};
}

}  // namespace attnsim
