// Heads over ranks: DeepSpeed-Ulysses' all-to-alls around any schedule (arXiv 2309.14509), and tensor parallelism.
//
// Before the schedule each of U ranks gives every other the heads of its share for the own tokens, so that it has all of
// the group's tokens and 1/U of the heads; after it the results go back. In between the group's tokens are one chunk of the
// schedule, whose grid is of groups: ring inside is USP (arXiv 2405.07719) and TransformerEngine's a2a+p2p, double-ring
// LoongTrain (arXiv 2406.18485), attention2d what TensorRT-LLM runs, one group alone is plain Ulysses. Forward leaves q, k,
// v, o and lse as they are in between for backward, which exchanges d_o before and d_q, d_k, d_v after.
//
// Bytes per rank beside the schedule's: forward (U-1)/U (2q + 2kv), backward (U-1)/U (2q + 2kv). With fewer key heads than
// ranks each rank gets one, U/Hkv of them a copy: (U-1)/U 2kv U/Hkv, and the copies' dK, dV are summed at home. Where heads
// are not a multiple of U, slots are as large as the largest share. Latents in the place of keys and values (latent_keys.hpp) are
// not cut by heads: an all-gather sends (U-1) times the own ones.
//
// Tensor parallelism is one more axis along which nothing moves: each rank has 1/T of the heads.
#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

class exchange {
 public:
  exchange(schedule inner, int degree)
      : s_(std::move(inner)),
        starts_with_(inputs_of(s_)),
        body_(std::move(s_.program)),
        degree_(degree) {
    s_.program.clear();
    auto extents = s_.grid.extents();
    s_.head_axis = only(static_cast<int>(extents.size()));
    extents.push_back(degree);
    s_.grid = rank_grid(extents);
    for (auto& b : s_.buffers) b.heads = head_form::share;
    s_.streams.emplace_back("heads");
  }

  schedule write() {
    const bool forward = s_.pass == pass_kind::forward;
    const bool latents = contains(starts_with_, tensor::latent);
    gather(picked(starts_with_, !forward  ? std::vector{tensor::d_o}
                                : latents ? std::vector{tensor::q}
                                          : std::vector{tensor::q, tensor::k, tensor::v}));
    if (latents) gather_whole(picked(starts_with_, {tensor::latent}));
    s_.program.insert(s_.program.end(), body_.begin(), body_.end());
    scatter(picked(results(), forward ? std::vector{tensor::o} : results_of(s_.pass)));
    keep_saved_only(forward);
    derive_needs(s_);
    return std::move(s_);
  }

 private:
  static operands picked(const operands& list, const std::vector<tensor>& what) {
    operands result;
    for (const auto t : what) result.push_back(find(list, t));
    return result;
  }

  /// What the schedule leaves in resident buffers.
  operands results() const {
    operands list;
    for (auto op = body_.rbegin(); op != body_.rend(); ++op) {
      for (const auto& o : op->writes) {
        if (s_.buffer_of(o).resident && !contains(list, o.what)) list.push_back(o);
      }
    }
    return list;
  }

  /// A buffer of all heads of the own chunk for each operand, or of a slot a share.
  operands like(const operands& list, head_form form) {
    const bool dealt = form == head_form::dealt;
    operands result;
    for (const auto& o : list) {
      s_.buffers.push_back(
          {.what = o.what, .slots = dealt ? s_.head_axis : 0, .resident = !dealt, .heads = form});
      operand whole{.buffer = static_cast<int>(s_.buffers.size()) - 1, .what = o.what};
      if (dealt) whole.slots = degree_, whole.at.copies = s_.head_axis;
      result.push_back(whole);
    }
    return result;
  }

  void gather(const operands& shares) {
    const auto own = like(shares, head_form::all), dealt = like(shares, head_form::dealt);
    add(op_kind::copy, 0, own, dealt);
    add(op_kind::all_to_all, heads(), dealt, shares);
  }

  /// What heads do not cut.
  void gather_whole(const operands& all) {
    add(op_kind::all_gather, heads(), like(all, head_form::all), all);
  }

  void scatter(const operands& shares) {
    const auto dealt = like(shares, head_form::dealt), own = like(shares, head_form::all);
    add(op_kind::all_to_all, heads(), shares, dealt);
    add(op_kind::copy, 0, dealt, own);
  }

  /// Of what is exchanged only forward's stays, for backward.
  void keep_saved_only(bool forward) {
    for (auto& b : s_.buffers) {
      const bool exchanged = b.what == tensor::d_o || is_gradient(b.what);
      if (!forward && exchanged && b.heads == head_form::share) b.resident = false;
    }
  }

  static bool is_gradient(tensor t) {
    return t == tensor::d_q || t == tensor::d_k || t == tensor::d_v;
  }

  int heads() const { return static_cast<int>(s_.streams.size()) - 1; }

  void add(op_kind kind, int stream, operands reads, operands writes) {
    const auto axes = is_communication(kind) ? s_.head_axis : 0;
    s_.program.push_back({kind, stream, axes, 0, std::move(reads), std::move(writes), {}});
  }

  schedule s_;
  operands starts_with_;
  std::vector<operation> body_;
  int degree_;
};

}  // namespace

schedule with_head_exchange(schedule inner, int degree) {
  if (degree == 1) return inner;
  return exchange(std::move(inner), degree).write();
}

schedule with_tensor_parallelism(schedule s, int degree) {
  if (degree == 1) return s;
  auto extents = s.grid.extents();
  extents.push_back(degree);
  s.grid = rank_grid(extents);
  s.tensor_parallel = degree;
  return s;
}

}  // namespace attnsim
