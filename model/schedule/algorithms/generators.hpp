// The pieces that several schedules are written with. Axis 0 of the grid runs along a column (keys travel), axis 1 along a
// row (queries and outputs travel).
#pragma once

#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {

constexpr int along_column = 0;
constexpr int along_row = 1;

/// The chunk of the rank `down` further along the column and `right` further along the row.
constexpr position at(int down, int right) {
  return {.shift = {down, right}};
}

/// What a pass needs of a query chunk: q; backward also d_o and two row statistics.
std::vector<tensor> query_side(pass_kind);
/// What a pass finds for the rows of a query chunk: o and lse, or d_q.
std::vector<tensor> row_results(pass_kind);

/// The rank's own query chunk. Backward starts with its delta, from d_o and o.
operands own_queries(schedule_builder&);

// Generators that other schedules use, in the files of their names.
schedule ring(const strategy&, const attention&, pass_kind);
schedule mesh(const strategy&, const attention&, pass_kind);
schedule attention2d(const strategy&, const attention&, pass_kind);

/// K and V go round a column, dK and dV with them and one hop further, home: kv, R dkv.
volume ring_volume(const strategy&, const chunk_bytes&, pass_kind);
/// Queries and partial results along rows, keys and their gradients along columns: (C-1)(q + o), (R-1)(kv + dkv).
volume tile_volume(const strategy&, const chunk_bytes&, pass_kind);
/// The same, all of it before or after the computation.
volume attention2d_volume(const strategy&, const chunk_bytes&, pass_kind);

/// Why not, for schedules of one column.
std::string one_column(const strategy&, const attention&);

/// Keys stay and queries go round a column. Partial results follow one hop behind, or go straight home.
schedule travelling_queries(const strategy&, pass_kind, bool straight_home);
volume travelling_volume(const strategy&, const chunk_bytes&, bool straight_home);

/// How a decoding step's queries come to every rank, and partial outputs to the ranks of their heads (cache_shards.cpp).
enum class query_heads { whole, gathered };
enum class output_exchange { all_to_all, weighed_sum };
schedule cache_shards(const strategy&, const attention&, query_heads, output_exchange);
volume cache_shards_volume(const strategy&, const chunk_bytes&, query_heads, output_exchange);
/// Why not, for the same: ranks share out the query heads.
std::string sharing_outputs(const strategy&, const attention&);
/// What schedules that decode so describe alike.
template <query_heads Start, output_exchange Exchange>
algorithm decoding(const std::string& name, const std::string& summary, const std::string& source) {
  return {.name = name,
          .summary = summary,
          .source = source,
          .generate = [](const strategy& s, const attention& a,
                         pass_kind) { return cache_shards(s, a, Start, Exchange); },
          .refusal = sharing_outputs,
          .sends = [](const strategy& s, const chunk_bytes& b,
                      pass_kind) { return cache_shards_volume(s, b, Start, Exchange); },
          .sends_partials = true,
          .sends_gradients = false,
          .whole_queries = true,
          .for_more_keys = true,
          .tokens = token_layout::striped};
}

/// The schedule of one place: a plain kernel call from the inputs to the results.
schedule one_kernel_call(pass_kind);

/// The forward schedule with attention sinks, where it has none yet: at the end, on the outputs of whole rows.
schedule with_sinks(schedule);

/// The forward schedule without values of their own.
schedule with_values_in_keys(schedule);

/// The schedule over groups of `degree` ranks that exchange tokens for heads around it (head_exchange.cpp).
schedule with_head_exchange(schedule, int degree);
/// The schedule on as many ranks for every of its ranks, with its share of the heads each.
schedule with_tensor_parallelism(schedule, int degree);

/// The ring reduction of one row's partial outputs or dQ (or of one column's dK, dV): the partial of the rank k further
/// along `axis` is complete here after hop(k - 1) came in and the own part is added; hop(k) sends it on. After hop(n - 1)
/// the own chunk's sum over all others has arrived: finish() adds the own part. Attention2D, algorithm 7.
class ring_reduction {
 public:
  /// `wire`: number format of what travels; `own_part(k)`: this rank's partial for the chunk k further along.
  ring_reduction(schedule_builder&, int axis, int stream, precision wire, position home = {});

  void hop(int k, const operands& own_part);
  void finish(const operands& own_part, const operands& result);

 private:
  void combine(const operands& own_part, const operands& into);

  schedule_builder* builder_;
  int axis_;
  int stream_;
  precision wire_;
  position home_;
  operands incoming_;  ///< empty before the first hop
};

}  // namespace attnsim
