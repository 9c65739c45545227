// Pass-Q by all-gather: every rank gathers all queries, attends to its own keys by one call, and partial outputs go home by one
// all-to-all and one merge. It is Attention2D with one row; that one also reduces them by a ring.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

schedule passq_allgather(const strategy& s, const attention& a, pass_kind pass) {
  auto one_exchange = s;
  one_exchange.reduction = reduction_kind::all_to_all;
  return attention2d(one_exchange, a, pass);
}

std::string one_row(const strategy& s, const attention&) {
  return s.rows == 1 ? "" : "runs on one row of ranks";
}

}  // namespace

algorithm describe_passq_allgather() {
  return {.name = "passq-allgather",
          .summary = "every rank gathers all queries; partial outputs go home by one all-to-all",
          .source = "arXiv 2411.01783, pass-Q",
          .generate = passq_allgather,
          .refusal = one_row,
          .sends = attention2d_volume,
          .sends_partials = true,
          .for_more_keys = true};
}

}  // namespace attnsim
