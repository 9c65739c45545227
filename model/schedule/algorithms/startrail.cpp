// StarTrail (arXiv 2407.00611): rings of teams. The C ranks of a team gather their queries and together meet all keys: each
// takes those of its own place in all teams, C teams at a time gathered beforehand, which go round a ring of P/C^2 such
// groups. The team then reduces its partial outputs. C = 1 is ring, C^2 = P is Attention2D without overlap.
//
// The paper gathers keys within the team and moves them to the ring they start in; here they are gathered where they
// start, among ranks of one place, at (C-1) 2kv either way and without the move.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

// Grid (P/C^2) x C x C: teams are consecutive ranks.
constexpr int around = 0, across_teams = 1, in_team = 2;

std::vector<int> extents(const strategy& s) {
  return {s.rows / s.cols, s.cols, s.cols};
}

class startrail_program {
 public:
  startrail_program(const strategy& s, pass_kind pass)
      : s_(s),
        groups_(s.rows / s.cols),
        b_(s.schedule, rank_grid(extents(s)), pass),
        team_(b_.stream("team")),
        ring_(b_.stream("ring")),
        gradients_(pass == pass_kind::backward ? b_.stream("gradients") : 0) {}

  schedule forward();
  schedule backward();

 private:
  operands gather(const std::vector<tensor>& what, const operands& own, int axis, int stream) {
    const auto all = b_.gathered(what, only(axis));
    b_.add(op_kind::all_gather, stream, own, all, only(axis));
    return all;
  }
  /// The keys of the group `step` further round, and the next ones on their way.
  operands next_keys(operands& keys, int step) {
    const auto block = keys;
    if (step + 1 < groups_) {
      keys = b_.gathered({tensor::k, tensor::v}, only(across_teams), at(step + 1, 0));
      b_.add(op_kind::shift, ring_, block, keys, only(around), -1);
    }
    return block;
  }
  operands reduce(const std::vector<tensor>& what, const operands& all, int axis, int stream) {
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
  const auto sums = b_.gathered(row_results(pass_kind::forward), only(in_team), {},
                                groups_ > 1 ? precision::fp32 : s_.partials);
  for (int step = 0; step < groups_; ++step) {
    const auto block = next_keys(keys, step);
    b_.add(op_kind::attention, 0, queries + block + (step == 0 ? operands{} : sums), sums);
  }
  ring_reduction reduction(b_, in_team, team_, s_.partials);
  for (int k = 1; k < s_.cols; ++k) reduction.hop(k, slot_of(sums, in_team, k));
  reduction.finish(slot_of(sums, in_team, 0), result);
  return b_.finish();
}

schedule startrail_program::backward() {
  const auto own = own_queries(b_);
  const auto kv = b_.own({tensor::k, tensor::v});
  const auto d_q = b_.own({tensor::d_q});
  const auto d_kv = b_.own({tensor::d_k, tensor::d_v});
  const auto key_gradients = [&](int group) {
    return b_.gathered({tensor::d_k, tensor::d_v}, only(across_teams), at(group, 0), s_.gradients);
  };
  const auto queries = gather(query_side(pass_kind::backward), own, in_team, team_);
  auto keys = gather({tensor::k, tensor::v}, kv, across_teams, ring_);
  const auto row_sums = b_.gathered({tensor::d_q}, only(in_team), {}, precision::fp32);

  operands column_sums;
  for (int step = 0; step < groups_; ++step) {
    const auto block = next_keys(keys, step);
    auto gradient = key_gradients(step);
    const auto before = step == 0 ? operands{} : row_sums;
    b_.add(op_kind::attention_backward, 0, queries + block + before, row_sums + gradient);
    if (step > 0) {
      const auto sum = key_gradients(step);
      b_.add(op_kind::accumulate, 0, column_sums + gradient, sum);
      gradient = sum;
    }
    column_sums = gradient;
    if (groups_ == 1) break;
    column_sums = key_gradients(step + 1);
    b_.add(op_kind::shift, gradients_, gradient, column_sums, only(around), -1);
  }
  b_.add(op_kind::copy, 0, reduce({tensor::d_q}, row_sums, in_team, team_), d_q);
  b_.add(op_kind::copy, 0, reduce({tensor::d_k, tensor::d_v}, column_sums, across_teams, ring_),
         d_kv);
  return b_.finish();
}

schedule startrail(const strategy& s, const attention&, pass_kind pass) {
  startrail_program program(s, pass);
  return pass == pass_kind::forward ? program.forward() : program.backward();
}

std::string team_squared(const strategy& s, const attention&) {
  if (s.cols == 1) return "has teams of several ranks (else it is ring)";
  return s.rows % s.cols == 0 ? "" : "needs rows to be a multiple of columns";
}

volume startrail_volume(const strategy& s, const chunk_bytes& b, pass_kind) {
  const int groups = s.rows / s.cols, others = s.cols - 1;
  const int hops_home = groups > 1 ? groups : 0;
  return {.parts = {{only(in_team), others * (b.queries + b.row_results)},
                    {only(across_teams), others * (b.keys + b.key_results)},
                    {only(around), s.cols * ((groups - 1) * b.keys + hops_home * b.key_results)}},
          .apart = groups == 1};
}

}  // namespace

algorithm describe_startrail() {
  return {.name = "startrail",
          .summary = "teams of C ranks share queries, keys of C teams travel round a ring",
          .source = "arXiv 2407.00611",
          .generate = startrail,
          .refusal = team_squared,
          .sends = startrail_volume,
          .extents = extents,
          .sends_partials = true};
}

}  // namespace attnsim
