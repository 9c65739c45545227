#include "model/schedule/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "model/error.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

constexpr std::string_view tile_prefix = "tile:";

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

using tile_shape = std::pair<int, int>;  // rows, columns

/// The tiles of `node` ranks that divide the grid, by ascending number of columns.
std::vector<tile_shape> node_tiles(const rank_grid& grid, int node) {
  std::vector<tile_shape> tiles;
  for (int cols = 1; cols <= node; ++cols) {
    const int rows = node / cols;
    if (rows * cols == node && grid.extent(0) % rows == 0 && grid.extent(1) % cols == 0)
      tiles.emplace_back(rows, cols);
  }
  return tiles;
}

/// One rank where no tile divides the grid.
tile_shape squarest(const std::vector<tile_shape>& tiles) {
  const auto found = std::min_element(tiles.begin(), tiles.end(), [](auto a, auto b) {
    return std::abs(a.first - a.second) < std::abs(b.first - b.second);
  });
  return found == tiles.end() ? tile_shape{1, 1} : *found;
}

std::vector<int> tile_by_tile(const rank_grid& grid, tile_shape tile) {
  const auto [rows, cols] = tile;
  auto devices = identity(grid.ranks());
  const int tiles_across = grid.extent(1) / cols;
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const int r = grid.coordinate(rank, 0), col = grid.coordinate(rank, 1);
    const int number = r / rows * tiles_across + col / cols;
    devices[static_cast<std::size_t>(rank)] = number * rows * cols + r % rows * cols + col % cols;
  }
  return devices;
}

/// As many nodes as the ranks need, one rank on each in turn.
std::vector<int> along_rails(int ranks, int devices_per_node) {
  const int nodes = (ranks + devices_per_node - 1) / devices_per_node;
  std::vector<int> devices;
  for (int rank = 0; rank < ranks; ++rank)
    devices.push_back(rank % nodes * devices_per_node + rank / nodes);
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
        asked("placement"), placement,
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

/// The tile that "tile:RxC" names.
tile_shape parse_tile(const std::string& placement, const rank_grid& places) {
  tile_shape tile{0, 0};
  const char* const end = placement.data() + placement.size();
  auto read = std::from_chars(placement.data() + tile_prefix.size(), end, tile.first);
  if (read.ec == std::errc{} && read.ptr != end && *read.ptr == 'x')
    read = std::from_chars(read.ptr + 1, end, tile.second);
  const bool fits = read.ptr == end && tile.first > 0 && tile.second > 0 &&
                    places.extent(0) % tile.first == 0 && places.extent(1) % tile.second == 0;
  if (!fits) {
    throw input_error(asked("placement"), placement,
                      fmt::format("expected tile:RxC with R and C that divide the grid {}x{}",
                                  places.extent(0), places.extent(1)));
  }
  return tile;
}

}  // namespace

std::string placed_on(const std::vector<int>& devices) {
  return fmt::format("custom:{}", fmt::join(devices, ","));
}

std::vector<std::string> placements() {
  return {"node-major", "row-in-node", "column-in-node", "tile-in-node", "rails"};
}

std::vector<int> place(const std::string& placement, const rank_grid& grid, const cluster& c) {
  if (grid.ranks() > c.devices()) {
    throw infeasible(asked("ranks"), std::to_string(grid.ranks()),
                     fmt::format("{} has {} devices; use at most that many, or more nodes", c.name,
                                 c.devices()));
  }
  constexpr std::string_view list = "custom:";
  if (placement.starts_with(list)) {
    return custom(std::string_view(placement).substr(list.size()), placement, grid.ranks(),
                  c.devices());
  }
  if (placement == "node-major" || placement == "row-in-node") return identity(grid.ranks());
  if (placement == "rails")
    return c.devices_per_node > 0 ? along_rails(grid.ranks(), c.devices_per_node)
                                  : identity(grid.ranks());
  const rank_grid places({grid.extent(0), grid.extent(1)});
  const int block = grid.ranks() / places.ranks();
  if (placement == "column-in-node") return expanded(column_in_node(places), block);
  if (placement == "tile-in-node") {
    const int node = std::max(1, c.devices_per_node / block);
    return expanded(tile_by_tile(places, squarest(node_tiles(places, node))), block);
  }
  if (placement.starts_with(tile_prefix))
    return expanded(tile_by_tile(places, parse_tile(placement, places)), block);
  throw input_error(
      asked("placement"), placement,
      fmt::format("expected one of: {}, tile:RxC, custom:LIST{}", fmt::join(placements(), ", "),
                  did_you_mean(placement, placements())));
}

std::vector<std::string> distinct_placements(const rank_grid& grid, const cluster& c) {
  std::vector<std::string> names{"node-major", "column-in-node", "tile-in-node", "rails"};
  const rank_grid places({grid.extent(0), grid.extent(1)});
  const int block = grid.ranks() / places.ranks();
  for (const auto& [rows, cols] : node_tiles(places, c.devices_per_node / block))
    names.push_back(fmt::format("{}{}x{}", tile_prefix, rows, cols));
  std::vector<std::vector<int>> known;
  std::erase_if(names, [&](const std::string& name) {
    auto devices = place(name, grid, c);
    const bool seen = std::find(known.begin(), known.end(), devices) != known.end();
    if (!seen) known.push_back(std::move(devices));
    return seen;
  });
  return names;
}

}  // namespace attnsim
