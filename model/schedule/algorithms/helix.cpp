// Helix Parallelism (arXiv 2507.07120; TensorRT-LLM): R ranks keep 1/R of the cached keys each, of T tensor-parallel groups with
// K/V heads of their own. Every rank projects the queries of its group's heads; one all-to-all brings partial outputs to the
// ranks of their heads.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {

algorithm describe_helix() {
  return decoding<query_heads::whole, output_exchange::all_to_all>(
      "helix",
      "decodes: the cache is sharded by tokens, one all-to-all shares out partial outputs "
      "by heads",
      "arXiv 2507.07120");
}

}  // namespace attnsim
