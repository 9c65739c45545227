// A sliding window by halo: ranks have consecutive tokens, and each gets the w - 1 keys before its own from the ranks before it
// and nothing else; of the furthest of these ranks only the last tokens. A rank attends to its own keys while the halo is on its
// way, then the first rows attend to the halo. The first ranks see less: what wraps around from the last is of no use to them.
//
// Backward has the halo of the forward pass, and sends the gradients of the halo home, where they are added to the rank's own.
// Bytes per rank, with kv and dkv those of a token: forward (w-1) kv, backward (w-1) dkv, whatever the sequence's length.
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
        b_(s.schedule, rank_grid({s.rows, 1}), pass),
        stream_(b_.stream("halo")) {
    b_.use_window_reach(reach());
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
    b_.add(op_kind::attention, 0, q + kv, result);
    for (const auto& keys : before) b_.add(op_kind::attention, 0, q + keys + result, result);
    return b_.finish();
  }

  schedule backward() {
    const std::vector<tensor> what{tensor::d_k, tensor::d_v};
    const auto queries = own_queries(b_);
    const auto kv = b_.own({tensor::k, tensor::v});
    const auto d_q = b_.chunk({tensor::d_q}, {}, precision::fp32);
    auto sums = b_.chunk(what, {}, s_.gradients);
    b_.add(op_kind::attention_backward, 0, queries + kv, d_q + sums);
    for (int hop = 1; hop <= reach(); ++hop) {
      const auto keys = of_hop(hop, b_.own({tensor::k, tensor::v}, precision::storage, home(hop)));
      const auto found = of_hop(hop, b_.chunk(what, home(hop), s_.gradients));
      const auto received = of_hop(hop, b_.chunk(what, {}, s_.gradients));
      b_.add(op_kind::attention_backward, 0, queries + keys + d_q, d_q + found);
      b_.add(op_kind::shift, stream_, found, received, only(along_column), -hop);
      sums = sums + received;
    }
    b_.add(op_kind::copy, 0, d_q, b_.own({tensor::d_q}));
    b_.add(reach() > 0 ? op_kind::accumulate : op_kind::copy, 0, sums, b_.own(what));
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

  strategy s_;
  halo halo_;
  schedule_builder b_;
  int stream_;
};

schedule generate_halo(const strategy& s, const attention& a, pass_kind pass) {
  window_halo program(s, a, pass);
  return pass == pass_kind::forward ? program.forward() : program.backward();
}

volume halo_volume(const strategy&, const chunk_bytes& b, pass_kind pass) {
  const auto sent = pass == pass_kind::forward ? b.halo_keys : b.halo_results;
  return {.parts = {{.axes = only(along_column), .bytes = sent, .round = false}},
          .apart = b.halo_keys == 0};
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
