#include "model/cost/volume.hpp"

#include "model/attention/halo.hpp"
#include "model/attention/heads.hpp"
#include "model/cost/workload.hpp"

namespace attnsim {
namespace {

/// Where queries are whole, so is the chunk of each rank.
std::int64_t query_places(const strategy& s) {
  return find_algorithm(s.schedule).whole_queries ? 1 : std::int64_t{s.rows} * s.cols;
}

struct chunk_sizes {
  attention problem;
  std::int64_t queries, keys, before;  ///< tokens; `before`: those that a window reaches
  head_range heads;

  std::int64_t of(tensor t, precision format = precision::wire) const {
    return (is_key_side(t) ? keys : queries) * token_bytes(problem, t, format, heads);
  }
  std::int64_t of_halo(tensor t, precision format = precision::wire) const {
    return before * token_bytes(problem, t, format, heads);
  }
  std::int64_t of_kept(tensor t, precision format = precision::wire) const {
    return problem.kept_first * token_bytes(problem, t, format, heads);
  }
};

/// The largest of any rank, as buffers have room for it.
chunk_sizes sizes_of(const strategy& s, const attention& a) {
  const auto places = std::int64_t{s.rows} * s.cols;
  const auto [chunks, tail] = halo_of(a, places);
  return {a, a.sequence / query_places(s), a.tokens(token_side::keys) / places,
          chunks * (a.sequence / places) + tail,
          share_of(share_of(all_heads(a), s.tensor_parallel, 0), s.ulysses, 0)};
}

chunk_bytes bytes_of(const chunk_sizes& chunk, const strategy& s, pass_kind pass) {
  const auto keys = s.keys_sent == key_form::latent ? chunk.of(tensor::latent)
                                                    : chunk.of(tensor::k) + chunk.of(tensor::v);
  const auto halo_keys = s.keys_sent == key_form::latent
                             ? chunk.of_halo(tensor::latent)
                             : chunk.of_halo(tensor::k) + chunk.of_halo(tensor::v);
  const auto kept_keys = s.keys_sent == key_form::latent
                             ? chunk.of_kept(tensor::latent)
                             : chunk.of_kept(tensor::k) + chunk.of_kept(tensor::v);
  if (pass == pass_kind::forward) {
    return {.queries = chunk.of(tensor::q),
            .keys = keys,
            .row_results = chunk.of(tensor::o, s.partials) + chunk.of(tensor::lse),
            .statistics = chunk.of(tensor::lse),
            .halo_keys = halo_keys,
            .kept_keys = kept_keys};
  }
  return {.queries = chunk.of(tensor::q) + chunk.of(tensor::d_o) + chunk.of(tensor::lse) +
                     chunk.of(tensor::delta),
          .keys = keys,
          .row_results = chunk.of(tensor::d_q, s.gradients),
          .key_results = chunk.of(tensor::d_k, s.gradients) + chunk.of(tensor::d_v, s.gradients),
          .halo_keys = halo_keys,
          .halo_results =
              chunk.of_halo(tensor::d_k, s.gradients) + chunk.of_halo(tensor::d_v, s.gradients),
          .kept_keys = kept_keys,
          .kept_results =
              chunk.of_kept(tensor::d_k, s.gradients) + chunk.of_kept(tensor::d_v, s.gradients)};
}

/// Forward q, k, v and o, backward d_o, d_q, d_k and d_v: all but the own share of a group's. A cached prefix stays.
std::int64_t exchanged(chunk_sizes chunk, const strategy& s, pass_kind pass) {
  chunk.keys -= chunk.problem.prefix / (std::int64_t{s.rows} * s.cols);
  const bool forward = pass == pass_kind::forward, latents = s.keys_sent == key_form::latent;
  const auto keys = latents ? chunk.of(tensor::latent)
                            : chunk.of(forward ? tensor::k : tensor::d_k) +
                                  chunk.of(forward ? tensor::v : tensor::d_v);
  const auto all = chunk.of(forward ? tensor::q : tensor::d_q) + chunk.of(tensor::o) + keys;
  return all / s.ulysses * (s.ulysses - 1);
}

}  // namespace

rank_grid whole_grid(const strategy& s) {
  auto extents = schedule_grid(s).extents();
  extents.back() = s.ulysses;
  extents.push_back(s.tensor_parallel);
  return rank_grid(extents);
}

axis_set exchange_axis(const rank_grid& whole) {
  return only(whole.axes() - 2);
}

volume volume_of(const strategy& s, const attention& a, pass_kind pass) {
  const auto& chosen = find_algorithm(s.schedule);
  const auto chunk = sizes_of(s, a);
  volume all{.apart = true};
  if (s.rows * s.cols > 1)
    all = chosen.sends ? chosen.sends(s, bytes_of(chunk, s, pass), pass) : volume{};
  if (s.ulysses > 1) all.parts.push_back({exchange_axis(whole_grid(s)), exchanged(chunk, s, pass)});
  return all;
}

}  // namespace attnsim
