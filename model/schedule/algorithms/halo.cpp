// A sliding window by halo: ranks have consecutive tokens, and each gets the w - 1 keys before its own from the ranks before it
// and nothing else; of the furthest of these ranks only the last tokens. A rank attends to its own keys while the halo is on its
// way, then the first rows attend to the halo. The first ranks see less: what wraps around from the last is of no use to them.
//
// Backward has the halo of the forward pass, and sends the gradients of the halo home, where they are added to the rank's own.
// Bytes per rank, with kv and dkv those of a token: forward (w-1) kv, backward (w-1) dkv, whatever the sequence's length.
//
// First tokens that stay visible when the window has moved on (StreamingLLM, arXiv 2309.17453) are the first rank's; all ranks gather
// as many of each other's, n, which are few, and attend to those of the first one. Backward their gradients are scattered home:
// n kv, and backward n (R-1) (kv + dkv).
#include <fmt/format.h>

#include "model/attention/halo.hpp"
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

class window_halo {
 public:
  window_halo(const strategy& s, const attention& a, pass_kind pass)
      : s_(s),
        halo_(halo_of(a, s.rows)),
        keeps_(a.kept_first > 0),
        b_(s.schedule, rank_grid({s.rows, 1}), pass),
        stream_(b_.stream("halo")) {
    b_.use_window_reach(reach());
    if (keeps_) b_.keep_apart();
  }

  schedule forward() {
    const auto q = b_.own({tensor::q});
    const auto kv = b_.own({tensor::k, tensor::v});
    const auto result = b_.own({tensor::o, tensor::lse});
    std::vector<operands> before;
    for (int hop = 1; hop <= reach(); ++hop) {
      before.push_back(of_hop(hop, b_.own({tensor::k, tensor::v}, precision::storage, home(hop))));
      b_.add(op_kind::shift, stream_, sent_in(hop, kv), before.back(), only(along_column), hop);
    }
    const auto first = keeps_ ? gathered_first(kv) : operands{};
    b_.add(op_kind::attention, 0, q + kv, result);
    for (const auto& keys : before) b_.add(op_kind::attention, 0, q + keys + result, result);
    if (keeps_) b_.add(op_kind::attention, 0, q + first + result, result);
    return b_.finish();
  }

  schedule backward() {
    const std::vector<tensor> what{tensor::d_k, tensor::d_v};
    const auto queries = own_queries(b_);
    const auto kv = b_.own({tensor::k, tensor::v});
    const auto d_q = b_.chunk({tensor::d_q}, {}, precision::fp32);
    auto sums = b_.chunk(what, {}, s_.gradients);
    const auto first = keeps_ ? gathered_first(kv) : operands{};
    b_.add(op_kind::attention_backward, 0, queries + kv, d_q + sums);
    for (int hop = 1; hop <= reach(); ++hop) {
      const auto keys = of_hop(hop, b_.own({tensor::k, tensor::v}, precision::storage, home(hop)));
      const auto found = of_hop(hop, b_.chunk(what, home(hop), s_.gradients));
      const auto received = of_hop(hop, b_.chunk(what, {}, s_.gradients));
      b_.add(op_kind::attention_backward, 0, queries + keys + d_q, d_q + found);
      b_.add(op_kind::shift, stream_, found, received, only(along_column), -hop);
      sums = sums + received;
    }
    if (keeps_) {
      const auto found = b_.kept(b_.gathered(what, only(along_column), {}, s_.gradients));
      const auto received = b_.kept(b_.chunk(what, {}, s_.gradients));
      b_.add(op_kind::attention_backward, 0, queries + first + d_q, d_q + found);
      b_.add(op_kind::reduce_scatter, stream_, found, received, only(along_column));
      sums = sums + received;
    }
    b_.add(op_kind::copy, 0, d_q, b_.own({tensor::d_q}));
    b_.add(reach() > 0 || keeps_ ? op_kind::accumulate : op_kind::copy, 0, sums, b_.own(what));
    return b_.finish();
  }

 private:
  int reach() const { return static_cast<int>(halo_.reach()); }
  static position home(int hop) { return at(-hop, 0); }
  operands of_hop(int hop, operands chunk) {
    return hop > halo_.chunks ? b_.tails(chunk) : std::move(chunk);
  }

  /// Consecutive, so that a copy is what a framework's slice costs.
  operands sent_in(int hop, const operands& own) {
    if (hop <= halo_.chunks) return own;
    const auto tail = b_.tails(b_.chunk({tensor::k, tensor::v}, {}));
    b_.add(op_kind::copy, 0, own, tail);
    return tail;
  }

  /// As many first tokens of all ranks as a window keeps.
  operands gathered_first(const operands& own) {
    const auto first = b_.kept(b_.chunk({tensor::k, tensor::v}, {}));
    const auto all = b_.kept(b_.gathered({tensor::k, tensor::v}, only(along_column)));
    b_.add(op_kind::copy, 0, own, first);
    b_.add(op_kind::all_gather, stream_, first, all, only(along_column));
    return all;
  }

  strategy s_;
  halo halo_;
  bool keeps_;
  schedule_builder b_;
  int stream_;
};

schedule generate_halo(const strategy& s, const attention& a, pass_kind pass) {
  window_halo program(s, a, pass);
  return pass == pass_kind::forward ? program.forward() : program.backward();
}

volume halo_volume(const strategy& s, const chunk_bytes& b, pass_kind pass) {
  const bool forward = pass == pass_kind::forward;
  const auto sent = forward ? b.halo_keys : b.halo_results;
  volume all{.parts = {{.axes = only(along_column), .bytes = sent, .round = false}},
             .apart = b.halo_keys == 0 && b.kept_keys == 0};
  if (const auto kept = b.kept_keys + (forward ? 0 : b.kept_results); kept > 0)
    all.parts.push_back({only(along_column), (s.rows - 1) * kept});
  return all;
}

}  // namespace

algorithm describe_halo() {
  return {.name = "halo",
          .summary = "a sliding window: each rank gets only the keys before its own that it sees",
          .source = "halo exchange, as of windows in Megatron-LM issue 2222",
          .generate = generate_halo,
          .refusal = one_column,
          .sends = halo_volume,
          .for_windows = true,
          .tokens = token_layout::contiguous};
}

}  // namespace attnsim
