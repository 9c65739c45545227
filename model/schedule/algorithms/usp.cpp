// USP (arXiv 2405.07719), a2a+p2p of TransformerEngine: Ulysses' exchange of heads within groups (head_exchange.cpp), a ring
// of groups.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {

algorithm describe_usp() {
  return {.name = "usp",
          .summary = "Ulysses within groups, ring between them (a2a+p2p of TransformerEngine)",
          .source = "arXiv 2405.07719",
          .generate = ring,
          .refusal = one_column,
          .sends = ring_volume,
          .heads = algorithm::exchange::usual};
}

}  // namespace attnsim
