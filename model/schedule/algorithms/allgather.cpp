// All-gather of keys, as in Megatron-LM and TransformerEngine (cp_comm_type all_gather) and Llama 3: Attention2D with one
// column. Every rank gets all keys, and backward gathers them again and reduce-scatters dK, dV.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
algorithm describe_allgather() {
  return {.name = "allgather",
          .summary = "every rank gathers all keys and values (TransformerEngine, Llama 3)",
          .source = "arXiv 2407.21783, section 3.3.2",
          .generate = attention2d,
          .refusal = one_column,
          .sends = attention2d_volume};
}

}  // namespace attnsim
