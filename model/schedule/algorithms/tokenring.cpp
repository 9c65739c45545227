// TokenRing (arXiv 2412.20501): queries go round, and a partial result goes straight to its home, against the direction of
// the queries, so both directions of every link carry data. Wants links between all ranks.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule tokenring(const strategy& s, const attention&, pass_kind pass) {
  return travelling_queries(s, pass, true);
}

std::string few_ranks(const strategy& s, const attention& a) {
  constexpr int most = 128;
  return s.rows > most ? "sends from every rank to every other, modelled up to 128 ranks"
                       : one_column(s, a);
}

volume tokenring_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  return travelling_volume(s, b, true);
}

}  // namespace

algorithm describe_tokenring() {
  return {.name = "tokenring",
          .summary = "queries travel one way, partial outputs straight home the other way",
          .source = "arXiv 2412.20501",
          .generate = tokenring,
          .refusal = few_ranks,
          .sends = tokenring_volume,
          .sends_partials = true};
}

}  // namespace attnsim
