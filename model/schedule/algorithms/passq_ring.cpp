// Pass-Q (arXiv 2411.01783, algorithm 3): keys and values stay, the queries of the new tokens travel round all ranks, each rank
// attends with those that pass to its own keys, and all partial outputs go home by one all-to-all, where one merge joins them.
// For prefills whose cached prefix is long: then queries and outputs are fewer bytes than keys. Backward, queries and dQ
// travel as in BurstAttention.
//
// TokenRing differs in that each partial output goes home at once.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule forward(const strategy& s) {
  schedule_builder b(s.schedule, rank_grid({s.rows, 1}), pass_kind::forward);
  const int ring = b.stream("queries"), home = b.stream("results");
  auto queries = b.own({tensor::q});
  const auto keys = b.own({tensor::k, tensor::v});
  const auto what = row_results(pass_kind::forward);
  const auto partials = b.gathered(what, only(along_column), {}, s.partials);
  for (int k = 0; k < s.rows; ++k) {
    const auto current = queries;
    if (k + 1 < s.rows) {
      queries = b.chunk({tensor::q}, at(k + 1, 0));
      b.add(op_kind::shift, ring, current, queries, only(along_column), -1);
    }
    b.add(op_kind::attention, 0, current + keys, slot_of(partials, along_column, k));
  }
  const auto received =
      b.gathered(what, only(along_column), {.copies = only(along_column)}, s.partials);
  b.add(op_kind::all_to_all, home, partials, received, only(along_column));
  b.add(op_kind::merge, 0, received, b.own(what));
  return b.finish();
}

schedule passq_ring(const strategy& s, const attention&, pass_kind pass) {
  return pass == pass_kind::forward ? forward(s) : travelling_queries(s, pass, false);
}

volume passq_ring_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  return travelling_volume(s, b, false);
}

}  // namespace

algorithm describe_passq_ring() {
  return {.name = "passq-ring",
          .summary = "keys stay, queries travel, partial outputs go home by one all-to-all",
          .source = "arXiv 2411.01783, pass-Q",
          .generate = passq_ring,
          .refusal = one_column,
          .sends = passq_ring_volume,
          .sends_partials = true,
          .for_more_keys = true};
}

}  // namespace attnsim
