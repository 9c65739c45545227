// Decode context parallelism with one all-to-all of partial outputs and their log-sum-exps (SGLang; vLLM's a2a exchange), else as
// dcp.cpp.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule dcp_a2a_program(const strategy& s, const attention&, pass_kind) {
  return cache_shards(s, query_heads::gathered, output_exchange::all_to_all);
}

volume dcp_a2a_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  return cache_shards_volume(s, b, query_heads::gathered, output_exchange::all_to_all);
}

}  // namespace

algorithm describe_dcp_a2a() {
  return {.name = "dcp-a2a",
          .summary =
              "decodes: ranks gather queries, one all-to-all shares out partial outputs by heads",
          .source = "vLLM and SGLang, decode context parallel: all-to-all",
          .generate = dcp_a2a_program,
          .refusal = sharing_outputs,
          .sends = dcp_a2a_volume,
          .sends_partials = true,
          .sends_gradients = false,
          .whole_queries = true,
          .for_more_keys = true,
          .tokens = token_layout::striped};
}

}  // namespace attnsim
