// BurstAttention (arXiv 2403.09347, optimize_bwd_comm): forward is ring's. Backward q, d_o and the row statistics go round,
// dQ follows one hop behind, dK, dV stay: less to send than ring's K, V, dK, dV for MHA, more for grouped queries.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule burst(const strategy& s, const attention& a, pass_kind pass) {
  return pass == pass_kind::forward ? ring(s, a, pass) : travelling_queries(s, pass, false);
}

volume burst_volume(const strategy& s, const chunk_bytes& b, pass_kind pass) {
  return pass == pass_kind::forward ? ring_volume(s, b, pass) : travelling_volume(s, b, false);
}

}  // namespace

algorithm describe_burst() {
  return {.name = "burst",
          .summary = "ring forward; backward queries and dQ travel, keys stay (BurstAttention)",
          .source = "arXiv 2403.09347",
          .generate = burst,
          .refusal = one_column,
          .sends = burst_volume};
}

}  // namespace attnsim
