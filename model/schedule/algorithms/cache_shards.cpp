// Decoding over a cache whose keys are sharded over the ranks (R x 1), for few new tokens: all ranks have all queries, of all
// heads, each attends by one call to its own keys, and partial outputs go to the ranks of their heads, each of which ends with
// 1/R of the heads of all tokens. No bytes depend on the keys.
//
// Queries are whole at the start (Helix: every rank projects them), or each rank has those of its heads and gathers the others'.
// Outputs are exchanged by
//   all_to_all   partial o and lse, each rank merges those of its heads: (R-1)/R (o + lse)
//   weighed_sum  lse is gathered, each rank weighs its partial o, which a reduce-scatter sums: lse + (R-1)/R o
#include <fmt/format.h>

#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

constexpr axis_set shards = only(along_column);

class cache_shards_program {
 public:
  cache_shards_program(const strategy& s, bool sinks)
      : s_(s),
        sinks_(sinks),
        b_(s.schedule, rank_grid({s.rows, 1}), pass_kind::forward),
        heads_(b_.stream("heads")) {
    b_.use_whole_queries(shards);
  }

  schedule write(query_heads start, output_exchange exchange) {
    const auto queries = start == query_heads::whole ? b_.own({tensor::q}) : gathered_queries();
    const auto keys = b_.own({tensor::k, tensor::v});
    const auto partial = b_.chunk(row_results(pass_kind::forward), {}, s_.partials);
    b_.add(op_kind::attention, 0, queries + keys, partial);
    exchange == output_exchange::all_to_all ? merge_shares(partial) : sum_shares(partial);
    return b_.finish();
  }

 private:
  /// A slot for each rank's share of the heads.
  operands dealt(const std::vector<tensor>& what, precision format) {
    return b_.gathered(what, shards, {.copies = shards}, format, head_form::dealt);
  }

  operands gathered_queries() {
    const auto own = b_.own({tensor::q}, precision::storage, {}, head_form::share);
    const auto shares = dealt({tensor::q}, precision::storage), all = b_.chunk({tensor::q}, {});
    b_.add(op_kind::all_gather, heads_, own, shares, shards);
    b_.add(op_kind::copy, 0, shares, all);
    return all;
  }

  void merge_shares(const operands& partial) {
    const auto what = row_results(pass_kind::forward);
    const auto sent = dealt(what, s_.partials);
    const auto received =
        b_.gathered(what, shards, {.copies = shards}, s_.partials, head_form::share);
    b_.add(op_kind::copy, 0, partial, sent);
    b_.add(op_kind::all_to_all, heads_, sent, received, shards);
    b_.add(op_kind::merge, 0, received, b_.own(what, precision::storage, {}, head_form::share));
  }

  /// Parts are summed, not merged: each takes the same part of the sinks.
  void sum_shares(const operands& partial) {
    if (sinks_) b_.add(op_kind::sink, 0, partial + b_.own({tensor::sinks}), partial, shards);
    const operands output{find(partial, tensor::o)};
    const auto statistics = b_.gathered({tensor::lse}, shards, {.copies = shards});
    b_.add(op_kind::all_gather, heads_, operands{find(partial, tensor::lse)}, statistics, shards);
    b_.add(op_kind::weigh, 0, output + statistics, output + b_.own({tensor::lse}));
    const auto sent = dealt({tensor::o}, s_.partials);
    b_.add(op_kind::copy, 0, output, sent);
    const auto result = b_.own({tensor::o}, precision::storage, {}, head_form::share);
    if (s_.partials == precision::storage)
      return b_.add(op_kind::reduce_scatter, heads_, sent, result, shards);
    const auto sum = b_.chunk({tensor::o}, {}, s_.partials, head_form::share);
    b_.add(op_kind::reduce_scatter, heads_, sent, sum, shards);
    b_.add(op_kind::copy, 0, sum, result);
  }

  strategy s_;
  bool sinks_;
  schedule_builder b_;
  int heads_;
};

}  // namespace

schedule cache_shards(const strategy& s, const attention& a, query_heads start,
                      output_exchange exchange) {
  return cache_shards_program(s, a.sinks).write(start, exchange);
}

volume cache_shards_volume(const strategy& s, const chunk_bytes& b, query_heads start,
                           output_exchange exchange) {
  const auto others = [&](std::int64_t bytes) { return bytes / s.rows * (s.rows - 1); };
  const auto outputs = b.row_results - b.statistics;
  std::int64_t all = others(outputs);
  all +=
      exchange == output_exchange::all_to_all ? others(b.statistics) : b.statistics * (s.rows - 1);
  if (start == query_heads::gathered) all += others(b.queries);
  return {.parts = {{shards, all}}, .apart = true};
}

std::string sharing_outputs(const strategy& s, const attention& a) {
  if (auto reason = one_column(s, a); !reason.empty()) return reason;
  const auto heads = a.heads / s.tensor_parallel;
  if (heads % s.rows == 0) return "";
  return fmt::format("{} query heads of a group are not a multiple of its {} ranks", heads, s.rows);
}

}  // namespace attnsim
