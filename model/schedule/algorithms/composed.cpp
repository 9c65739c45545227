// A schedule composed of levels, as a search finds them: one axis of the grid a level of the cluster (socket, node, leaf, site),
// and along each one way of sharing the work.
//
//   keys-gather     ranks gather each other's K, V; backward reduces and scatters dK, dV
//   keys-ring       K, V go round; what has come is gathered along the keys-gather levels, and dK, dV travel with it
//   queries-gather  ranks gather each other's queries; partial outputs, backward dQ, are reduced along it
//
// With an exchange of heads around it (head_exchange.cpp), Ulysses is a level too, the last. K, V are gathered from the last
// level to the first, so where much is to stay on fast links those levels come first: each gather multiplies what the next
// moves. One level alone is ring, allgather or attention2d's row; two are startrail's or hierarchical-allgather's; others have
// no name. At most one keys-ring and one queries-gather. Without levels it gathers keys along columns and queries along rows.
#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

/// Without levels of its own: keys gathered along columns, queries along rows.
strategy with_levels(strategy s) {
  if (s.levels.empty())
    s.levels = {{level_kind::keys_gather, s.rows}, {level_kind::queries_gather, s.cols}};
  return s;
}

std::vector<int> axes_of(const strategy& s, level_kind kind) {
  std::vector<int> axes;
  for (std::size_t i = 0; i < s.levels.size(); ++i) {
    if (s.levels[i].kind == kind) axes.push_back(static_cast<int>(i));
  }
  return axes;
}

int ranks_along(const strategy& s, bool queries) {
  int ranks = 1;
  for (const auto& one : s.levels) {
    if ((one.kind == level_kind::queries_gather) == queries) ranks *= one.ranks;
  }
  return ranks;
}

std::vector<int> extents_of_levels(const strategy& s) {
  std::vector<int> extents;
  for (const auto& one : with_levels(s).levels) extents.push_back(one.ranks);
  if (extents.size() == 1) extents.push_back(1);
  return extents;
}

class composition {
 public:
  composition(const strategy& s, const attention& a, pass_kind pass)
      : s_(s),
        b_(s.schedule, rank_grid(extents_of_levels(s)), pass),
        ring_stream_(b_.stream("keys")),
        gather_stream_(b_.stream("gather")),
        result_stream_(b_.stream("results")),
        gathers_(axes_of(s, level_kind::keys_gather)) {
    const auto ring = axes_of(s, level_kind::keys_ring),
               row = axes_of(s, level_kind::queries_gather);
    if (!ring.empty())
      ring_ = ring.front(), steps_ = s.levels[static_cast<std::size_t>(ring_)].ranks;
    if (!row.empty()) row_ = row.front();
    for (const int axis : gathers_) gathered_ |= only(axis);
    reorders_ = a.mask == mask_kind::causal && is_zigzag(s.tokens) && ring_ < 0 && row_ < 0;
  }

  schedule forward();
  schedule backward();

 private:
  /// Of the rank so many steps along the ring.
  position after(int steps) const {
    position where;
    if (ring_ >= 0) where.shift[static_cast<std::size_t>(ring_)] = steps;
    return where;
  }

  operands gathered_queries(const std::vector<tensor>& what, const operands& own) {
    if (row_ < 0) return own;
    const auto all = b_.gathered(what, only(row_));
    b_.add(op_kind::all_gather, gather_stream_, own, all, only(row_));
    return all;
  }

  /// From the last level to the first.
  operands gathered_keys(operands keys, int step) {
    const std::vector<tensor> what{tensor::k, tensor::v};
    axis_set held = 0;
    for (auto axis = gathers_.rbegin(); axis != gathers_.rend(); ++axis) {
      held |= only(*axis);
      const auto more = b_.gathered(what, held, after(step));
      b_.add(op_kind::all_gather, gather_stream_, keys, more, only(*axis));
      keys = more;
    }
    if (!reorders_ || gathers_.empty()) return keys;
    const auto sorted = b_.gathered(what, held, {.ascending = true});
    b_.add(op_kind::copy, 0, keys, sorted);
    return sorted;
  }

  operands next_keys(const operands& keys, int step) {
    const auto next = b_.chunk({tensor::k, tensor::v}, after(step));
    b_.add(op_kind::shift, ring_stream_, keys, next, only(ring_), -1);
    return next;
  }

  /// Room for the sums of the rank's rows, or of the whole row of ranks.
  operands row_sums(const std::vector<tensor>& what, precision format) {
    return row_ < 0 ? b_.chunk(what, {}, format) : b_.gathered(what, only(row_), {}, format);
  }

  void reduce_outputs(const operands& partials, const operands& result);
  operands reduced_key_gradients(operands sums, int step);

  strategy s_;
  schedule_builder b_;
  int ring_stream_, gather_stream_, result_stream_;
  std::vector<int> gathers_;  ///< axes
  int ring_ = -1, row_ = -1;  ///< likewise
  int steps_ = 1;
  axis_set gathered_ = 0;
  bool reorders_ = false;  ///< so that each half of a zigzag chunk of queries is one kernel call
};

schedule composition::forward() {
  const auto q = b_.own({tensor::q});
  auto kv = b_.own({tensor::k, tensor::v});
  const auto result = b_.own({tensor::o, tensor::lse});
  const auto what = row_results(pass_kind::forward);
  const bool plain = row_ < 0 && steps_ == 1;
  const auto sums = plain ? result : row_sums(what, steps_ > 1 ? precision::fp32 : s_.partials);
  auto keys = gathered_keys(kv, 0);
  const auto queries = gathered_queries({tensor::q}, q);
  for (int step = 0; step < steps_; ++step) {
    const auto now = keys;
    if (step + 1 < steps_) {
      kv = next_keys(kv, step + 1);
      keys = gathered_keys(kv, step + 1);
    }
    const auto held = step == 0 ? operands{} : sums;
    b_.add(op_kind::attention, 0, queries + now + held, sums);
  }
  if (!plain) reduce_outputs(sums, result);
  return b_.finish();
}

void composition::reduce_outputs(const operands& partials, const operands& result) {
  if (row_ < 0) return b_.add(op_kind::copy, 0, partials, result);
  const int ranks = s_.levels[static_cast<std::size_t>(row_)].ranks;
  if (s_.reduction == reduction_kind::all_to_all) {
    auto sent = partials;
    if (!b_.all_in(partials, s_.partials)) {
      sent = row_sums(row_results(pass_kind::forward), s_.partials);
      b_.add(op_kind::copy, 0, partials, sent);
    }
    const auto received =
        b_.gathered({tensor::o, tensor::lse}, only(row_), {.copies = only(row_)}, s_.partials);
    b_.add(op_kind::all_to_all, result_stream_, sent, received, only(row_));
    return b_.add(op_kind::merge, 0, received, result);
  }
  ring_reduction reduction(b_, row_, result_stream_, s_.partials);
  for (int k = 1; k < ranks; ++k) reduction.hop(k, slot_of(partials, row_, k));
  reduction.finish(slot_of(partials, row_, 0), result);
}

schedule composition::backward() {
  const auto own = own_queries(b_);
  auto kv = b_.own({tensor::k, tensor::v});
  const auto d_q = b_.own({tensor::d_q}), d_kv = b_.own({tensor::d_k, tensor::d_v});
  const bool plain = row_ < 0 && steps_ == 1;
  const auto row =
      plain ? d_q : row_sums({tensor::d_q}, steps_ > 1 ? precision::fp32 : s_.gradients);
  auto keys = gathered_keys(kv, 0);
  const auto queries = gathered_queries(query_side(pass_kind::backward), own);
  operands incoming;
  for (int step = 0; step < steps_; ++step) {
    const auto now = keys;
    if (step + 1 < steps_) {
      kv = next_keys(kv, step + 1);
      keys = gathered_keys(kv, step + 1);
    }
    auto where = after(step);
    where.ascending = reorders_ && gathered_ != 0;
    const std::vector<tensor> gradients{tensor::d_k, tensor::d_v};
    const auto sums = gathered_ == 0 ? b_.chunk(gradients, where, s_.gradients)
                                     : b_.gathered(gradients, gathered_, where, s_.gradients);
    b_.add(op_kind::attention_backward, 0, queries + now + (step == 0 ? operands{} : row),
           row + sums);
    auto gradient = reduced_key_gradients(sums, step);
    if (step > 0) {
      const auto sum = b_.chunk(gradients, after(step), s_.gradients);
      b_.add(op_kind::accumulate, 0, incoming + gradient, sum);
      gradient = sum;
    }
    incoming = gradient;
    if (steps_ > 1) {
      incoming = b_.chunk(gradients, after(step + 1), s_.gradients);
      b_.add(op_kind::shift, result_stream_, gradient, incoming, only(ring_), -1);
    }
  }
  b_.add(op_kind::copy, 0, incoming, d_kv);
  if (plain) return b_.finish();
  auto sum = row;
  if (row_ >= 0) {
    if (!b_.all_in(row, s_.gradients)) {
      sum = row_sums({tensor::d_q}, s_.gradients);
      b_.add(op_kind::copy, 0, row, sum);
    }
    const auto mine = b_.chunk({tensor::d_q}, {}, s_.gradients);
    b_.add(op_kind::reduce_scatter, gather_stream_, sum, mine, only(row_));
    sum = mine;
  }
  b_.add(op_kind::copy, 0, sum, d_q);
  return b_.finish();
}

/// From the first level to the last.
operands composition::reduced_key_gradients(operands sums, int step) {
  const std::vector<tensor> what{tensor::d_k, tensor::d_v};
  if (reorders_ && gathered_ != 0) {
    const auto in_slots = b_.gathered(what, gathered_, {}, s_.gradients);
    b_.add(op_kind::copy, 0, sums, in_slots);
    sums = in_slots;
  }
  auto held = gathered_;
  for (const int axis : gathers_) {
    held &= ~only(axis);
    const auto less = held == 0 ? b_.chunk(what, after(step), s_.gradients)
                                : b_.gathered(what, held, after(step), s_.gradients);
    b_.add(op_kind::reduce_scatter, result_stream_, sums, less, only(axis));
    sums = less;
  }
  return sums;
}

schedule composed(const strategy& s, const attention& a, pass_kind pass) {
  composition program(with_levels(s), a, pass);
  return pass == pass_kind::forward ? program.forward() : program.backward();
}

/// A gather of keys moves what the ones before it brought, at every step of the ring.
volume composed_volume(const strategy& given, const chunk_bytes& b, pass_kind) {
  const auto s = with_levels(given);
  volume all;
  std::int64_t steps = 1, held = 1;
  for (const int axis : axes_of(s, level_kind::keys_ring)) {
    steps = s.levels[static_cast<std::size_t>(axis)].ranks;
    all.parts.push_back(
        {only(axis), (steps - 1) * b.keys + (steps > 1 ? steps * b.key_results : 0)});
  }
  for (const int axis : axes_of(s, level_kind::queries_gather)) {
    const std::int64_t others = s.levels[static_cast<std::size_t>(axis)].ranks - 1;
    all.parts.push_back({only(axis), others * (b.queries + b.row_results)});
  }
  const auto gathers = axes_of(s, level_kind::keys_gather);
  for (auto axis = gathers.rbegin(); axis != gathers.rend(); ++axis) {
    const std::int64_t ranks = s.levels[static_cast<std::size_t>(*axis)].ranks;
    all.parts.push_back({only(*axis), steps * (ranks - 1) * held * (b.keys + b.key_results)});
    held *= ranks;
  }
  all.apart = steps == 1 && s.parts == 1;
  return all;
}

std::string refusal_of_levels(const strategy& s, const attention&) {
  if (s.levels.empty()) return "";
  if (s.levels.size() > 3) return "has at most three levels beside the exchange of heads";
  if (axes_of(s, level_kind::keys_ring).size() > 1) return "has one ring at most";
  if (axes_of(s, level_kind::queries_gather).size() > 1)
    return "gathers queries along one level at most";
  if (ranks_along(s, false) == s.rows && ranks_along(s, true) == s.cols) return "";
  return fmt::format("has levels of {}x{} ranks", ranks_along(s, false), ranks_along(s, true));
}

}  // namespace

algorithm describe_composed() {
  return {.name = "composed",
          .summary = "one way of sharing the work a level of the cluster, as a search finds it",
          .source = "attnsim search",
          .generate = composed,
          .refusal = refusal_of_levels,
          .sends = composed_volume,
          .extents = extents_of_levels,
          .heads = algorithm::exchange::possible,
          .reduces = true,
          .sends_partials = true,
          .found_by_search = true};
}

}  // namespace attnsim
