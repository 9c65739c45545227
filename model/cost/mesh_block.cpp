#include "model/cost/mesh_block.hpp"

#include <algorithm>

#include "model/cost/kernel.hpp"
#include "model/placement.hpp"

namespace attnsim {
namespace {

kernel_call block_call(const attention& a, pass_kind pass, int ranks) {
  const auto tokens = a.sequence / ranks;
  return {.pass = pass,
          .batch = a.batch,
          .heads = a.heads,
          .kv_heads = a.kv_heads,
          .head_dim = a.head_dim,
          .rows = tokens,
          .cols = tokens,
          .pairs = a.mask == mask_kind::full ? tokens * tokens : (tokens * tokens + 1) / 2,
          .dtype = a.dtype};
}

}  // namespace

double mesh_block_cost(const cluster& c, const attention& a, const strategy& s, pass_kind pass) {
  const rank_grid grid({s.rows, s.cols});
  const int neighbour = grid.shifted(0, s.cols > 1 ? 1 : 0, 1);
  if (neighbour == 0) return 0;
  const auto devices = place(s.placement, grid, c);
  std::vector<link_id> path;
  c.network.route(devices[0], devices[static_cast<std::size_t>(neighbour)], path);
  auto slowest = c.network.links()[path[0]].capacity;
  for (const auto id : path) slowest = std::min(slowest, c.network.links()[id].capacity);
  slowest = slowest * c.device.transport(transport_of(c.network, path)).efficiency;
  const byte_count chunk(a.batch * (a.sequence / grid.ranks()) * a.heads * a.head_dim *
                         element_bytes(a.dtype));
  return kernel_time(c.device, c.device.kernel(s.kernel), block_call(a, pass, grid.ranks())) /
         (chunk / slowest);
}

}  // namespace attnsim
