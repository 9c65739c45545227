// Helix Parallelism (arXiv 2507.07120; TensorRT-LLM): R ranks keep 1/R of the cached keys each, of T tensor-parallel groups with
// K/V heads of their own. Every rank projects the queries of its group's heads; one all-to-all brings partial outputs to the
// ranks of their heads.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule helix_program(const strategy& s, const attention&, pass_kind) {
  return cache_shards(s, query_heads::whole, output_exchange::all_to_all);
}

volume helix_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  return cache_shards_volume(s, b, query_heads::whole, output_exchange::all_to_all);
}

}  // namespace

algorithm describe_helix() {
  return {.name = "helix",
          .summary =
              "decodes: the cache is sharded by tokens, one all-to-all shares out partial outputs "
              "by heads",
          .source = "arXiv 2507.07120",
          .generate = helix_program,
          .refusal = sharing_outputs,
          .sends = helix_volume,
          .sends_partials = true,
          .sends_gradients = false,
          .whole_queries = true,
          .for_more_keys = true,
          .tokens = token_layout::striped};
}

}  // namespace attnsim
