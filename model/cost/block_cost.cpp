#include "model/cost/block_cost.hpp"

#include <algorithm>

#include "model/attention/heads.hpp"
#include "model/cost/kernel.hpp"
#include "model/cost/workload.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"

namespace attnsim {
namespace {

kernel_call block_call(const attention& a, const head_range& heads, pass_kind pass, int places) {
  const auto tokens = a.sequence / places, keys = a.tokens(token_side::keys) / places;
  return {.pass = pass,
          .batch = a.batch,
          .heads = heads.queries,
          .kv_heads = heads.keys,
          .head_dim = a.head_dim,
          .v_head_dim = a.v_head_dim,
          .latent = a.latent,
          .rows = tokens,
          .cols = keys,
          .pairs = a.mask == mask_kind::full
                       ? tokens * keys
                       : tokens * (a.prefix / places) + (tokens * tokens + 1) / 2,
          .dtype = a.dtype};
}

}  // namespace

double block_cost(const cluster& c, const attention& a, const strategy& s, pass_kind pass) {
  const auto grid = schedule_grid(s);
  const auto heads = share_of(share_of(all_heads(a), s.tensor_parallel, 0), s.ulysses, 0);
  const int places = s.rows * s.cols;
  const int neighbour = grid.shifted(0, s.cols > 1 ? 1 : 0, 1);
  if (neighbour == 0) return 0;
  const auto devices = place(s.placement, grid, c);
  std::vector<link_id> path;
  c.network.route(devices[0], devices[static_cast<std::size_t>(neighbour)], path);
  auto slowest = c.network.links()[path[0]].capacity;
  for (const auto id : path) slowest = std::min(slowest, c.network.links()[id].capacity);
  slowest = slowest * c.device.transport(transport_of(c.network, path)).efficiency;
  const byte_count chunk(a.sequence / places * token_bytes(a, tensor::q, precision::wire, heads));
  return kernel_time(c.device, c.device.kernel(s.kernel, a.dtype),
                     block_call(a, heads, pass, places), s.start) /
         (chunk / slowest);
}

}  // namespace attnsim
