// StarTrail (arXiv 2407.00611): rings of teams. The C ranks of a team gather their queries and together meet all keys: each
// takes those of its own place in all teams, C teams at a time gathered beforehand, which go round a ring of P/C^2 such
// groups. The team then reduces its partial outputs. C = 1 is ring, C^2 = P is Attention2D without overlap.
//
// The paper gathers keys within the team and moves them to the ring they start in; here they are gathered where they
// start, among ranks of one place, at (C-1) 2kv either way and without the move.
//
// Bytes per rank: forward  (C-1)(q + 2kv) + (P/C^2 - 1) C 2kv + (C-1)(qE + l)
//                 backward (C-1)(2q + 2l + 2kv) + (P/C^2 - 1) C 2kv + (P/C^2) C 2kvE [none if 1] + (C-1)(qE + 2kvE)
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

// Grid (P/C^2) x C x C: teams are consecutive ranks.
constexpr int around = 0, across_teams = 1, in_team = 2;

class startrail_program {
 public:
  startrail_program(const strategy& s, pass_kind pass)
      : s_(s),
        groups_(s.rows / s.cols),
        b_("startrail", rank_grid({groups_, s.cols, s.cols}), pass),
        team_(b_.stream("team")),
        ring_(b_.stream("ring")),
        gradients_(pass == pass_kind::backward ? b_.stream("gradients") : 0) {}

  schedule forward();
  schedule backward();

 private:
  operands gather(const std::vector<tensor>& what, const operands& own, int axis, int stream) {
    if (s_.cols == 1) return own;
    const auto all = b_.gathered(what, only(axis));
    b_.add(op_kind::all_gather, stream, own, all, only(axis));
    return all;
  }
  operands buffer(const std::vector<tensor>& what, int axis, position where, precision format) {
    return s_.cols == 1 ? b_.chunk(what, where, format)
                        : b_.gathered(what, only(axis), where, format);
  }
  /// The keys of the group `step` further round, and the next ones on their way.
  operands next_keys(operands& keys, int step) {
    const auto block = keys;
    if (step + 1 < groups_) {
      keys = buffer({tensor::k, tensor::v}, across_teams, at(step + 1, 0), precision::storage);
      b_.add(op_kind::shift, ring_, block, keys, only(around), -1);
    }
    return block;
  }
  operands reduce(const std::vector<tensor>& what, const operands& all, int axis, int stream) {
    if (s_.cols == 1) return all;
    const auto slots = b_.gathered(what, only(axis), {}, s_.gradients);
    const auto own = b_.chunk(what, {}, s_.gradients);
    if (!b_.all_in(all, s_.gradients)) b_.add(op_kind::copy, 0, all, slots);
    b_.add(op_kind::reduce_scatter, stream, b_.all_in(all, s_.gradients) ? all : slots, own,
           only(axis));
    return own;
  }

  strategy s_;
  int groups_;
  schedule_builder b_;
  int team_;
  int ring_;
  int gradients_;
};

schedule startrail_program::forward() {
  const auto q = b_.own({tensor::q});
  const auto kv = b_.own({tensor::k, tensor::v});
  const auto result = b_.own({tensor::o, tensor::lse});
  const auto queries = gather({tensor::q}, q, in_team, team_);
  auto keys = gather({tensor::k, tensor::v}, kv, across_teams, ring_);
  const auto sums =
      buffer({tensor::o, tensor::lse}, in_team, {}, groups_ > 1 ? precision::fp32 : s_.partials);
  for (int step = 0; step < groups_; ++step) {
    const auto block = next_keys(keys, step);
    b_.add(op_kind::attention, 0, queries + block + (step == 0 ? operands{} : sums), sums);
  }
  if (s_.cols == 1) {
    b_.add(op_kind::copy, 0, sums, result);
    return b_.finish();
  }
  ring_reduction reduction(b_, in_team, team_, s_.partials);
  for (int k = 1; k < s_.cols; ++k) reduction.hop(k, slot_of(sums, in_team, k));
  reduction.finish(slot_of(sums, in_team, 0), result);
  return b_.finish();
}

schedule startrail_program::backward() {
  const auto saved = b_.own({tensor::q, tensor::d_o, tensor::lse});
  const auto o = b_.own({tensor::o});
  const auto kv = b_.own({tensor::k, tensor::v});
  const auto d_q = b_.own({tensor::d_q});
  const auto d_kv = b_.own({tensor::d_k, tensor::d_v});
  const auto delta = b_.chunk({tensor::delta}, {});
  b_.add(op_kind::delta, 0, operands{find(saved, tensor::d_o)} + o, delta);
  const std::vector<tensor> query_side{tensor::q, tensor::d_o, tensor::lse, tensor::delta};
  const std::vector<tensor> key_side{tensor::d_k, tensor::d_v};
  const auto queries = gather(query_side, saved + delta, in_team, team_);
  auto keys = gather({tensor::k, tensor::v}, kv, across_teams, ring_);
  const auto row_sums = buffer({tensor::d_q}, in_team, {}, precision::fp32);

  operands column_sums;
  for (int step = 0; step < groups_; ++step) {
    const auto block = next_keys(keys, step);
    auto gradient = buffer(key_side, across_teams, at(step, 0), s_.gradients);
    const auto before = step == 0 ? operands{} : row_sums;
    b_.add(op_kind::attention_backward, 0, queries + block + before, row_sums + gradient);
    if (step > 0) {
      const auto sum = buffer(key_side, across_teams, at(step, 0), s_.gradients);
      b_.add(op_kind::accumulate, 0, column_sums + gradient, sum);
      gradient = sum;
    }
    column_sums = gradient;
    if (groups_ == 1) break;
    column_sums = buffer(key_side, across_teams, at(step + 1, 0), s_.gradients);
    b_.add(op_kind::shift, gradients_, gradient, column_sums, only(around), -1);
  }
  b_.add(op_kind::copy, 0, reduce({tensor::d_q}, row_sums, in_team, team_), d_q);
  b_.add(op_kind::copy, 0, reduce(key_side, column_sums, across_teams, ring_), d_kv);
  return b_.finish();
}

}  // namespace

schedule startrail(const strategy& s, const attention&, pass_kind pass) {
  startrail_program program(s, pass);
  return pass == pass_kind::forward ? program.forward() : program.backward();
}

}  // namespace attnsim
