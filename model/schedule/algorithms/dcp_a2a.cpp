// Decode context parallelism with one all-to-all of partial outputs and their log-sum-exps (SGLang; vLLM's a2a exchange), else as
// dcp.cpp.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {

algorithm describe_dcp_a2a() {
  return decoding<query_heads::gathered, output_exchange::all_to_all>(
      "dcp-a2a",
      "decodes: ranks gather queries, one all-to-all shares out partial outputs by heads",
      "vLLM and SGLang, decode context parallel: all-to-all");
}

}  // namespace attnsim
