#include "model/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "model/error.hpp"

namespace attnsim {
namespace {

std::vector<int> identity(int ranks) {
  std::vector<int> devices(static_cast<std::size_t>(ranks));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

/// Column by column, rank (r, c) on device c * R + r.
std::vector<int> column_in_node(const rank_grid& grid) {
  auto devices = identity(grid.ranks());
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    devices[static_cast<std::size_t>(rank)] =
        grid.coordinate(rank, 1) * grid.extent(0) + grid.coordinate(rank, 0);
  }
  return devices;
}

/// The squarest tile of `node` ranks that divides the grid; {0, 0} if none does.
std::pair<int, int> node_tile(const rank_grid& grid, int node) {
  std::pair<int, int> best{0, 0};
  for (int cols = 1; cols <= node; ++cols) {
    const int rows = node / cols;
    if (rows * cols != node || grid.extent(0) % rows != 0 || grid.extent(1) % cols != 0) continue;
    if (best.first == 0 || std::abs(rows - cols) < std::abs(best.first - best.second))
      best = {rows, cols};
  }
  return best;
}

std::vector<int> tile_in_node(const rank_grid& grid, int node) {
  const auto [rows, cols] = node_tile(grid, std::max(1, node));
  auto devices = identity(grid.ranks());
  if (rows == 0) return devices;
  const int tiles_across = grid.extent(1) / cols;
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const int r = grid.coordinate(rank, 0), col = grid.coordinate(rank, 1);
    const int tile = r / rows * tiles_across + col / cols;
    devices[static_cast<std::size_t>(rank)] = tile * rows * cols + r % rows * cols + col % cols;
  }
  return devices;
}

/// `block` consecutive devices for every one of the list.
std::vector<int> expanded(const std::vector<int>& places, int block) {
  std::vector<int> devices;
  for (const int p : places) {
    for (int i = 0; i < block; ++i) devices.push_back(p * block + i);
  }
  return devices;
}

std::vector<int> custom(std::string_view list, const std::string& placement, int ranks,
                        int available) {
  const auto fail = [&] {
    throw input_error(
        "--placement", placement,
        fmt::format("expected custom: and {} distinct devices of 0 to {}", ranks, available - 1));
  };
  std::vector<int> devices;
  std::vector<bool> used(static_cast<std::size_t>(available));
  while (!list.empty()) {
    int device = -1;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), device);
    if (error != std::errc{} || device < 0 || device >= available ||
        used[static_cast<std::size_t>(device)])
      fail();
    used[static_cast<std::size_t>(device)] = true;
    devices.push_back(device);
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    if (!list.empty() && list.front() != ',') fail();
    if (!list.empty()) list.remove_prefix(1);
  }
  if (static_cast<int>(devices.size()) != ranks) fail();
  return devices;
}

}  // namespace

std::vector<std::string> placements() {
  return {"node-major", "row-in-node", "column-in-node", "tile-in-node"};
}

std::vector<int> place(const std::string& placement, const rank_grid& grid, const cluster& c) {
  if (grid.ranks() > c.devices()) {
    throw infeasible(fmt::format(
        "--ranks: '{}': {} has {} devices; use at most that many, or --nodes for a larger cluster",
        grid.ranks(), c.name, c.devices()));
  }
  constexpr std::string_view list = "custom:";
  if (placement.starts_with(list)) {
    return custom(std::string_view(placement).substr(list.size()), placement, grid.ranks(),
                  c.devices());
  }
  if (placement == "node-major" || placement == "row-in-node") return identity(grid.ranks());
  const rank_grid places({grid.extent(0), grid.extent(1)});
  const int block = grid.ranks() / places.ranks();
  if (placement == "column-in-node") return expanded(column_in_node(places), block);
  if (placement == "tile-in-node")
    return expanded(tile_in_node(places, c.devices_per_node / block), block);
  throw input_error("--placement", placement,
                    fmt::format("expected one of: {}, custom:LIST", fmt::join(placements(), ", ")));
}

}  // namespace attnsim
