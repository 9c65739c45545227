#include "model/cluster/trees.hpp"

#include <algorithm>
#include <functional>

#include "model/cluster/rings.hpp"

namespace attnsim {
namespace {

constexpr int no_parent = -1;

/// The in-order binary tree over 0 .. n - 1 with root 0: a number with lowest bit b is the child of
/// the one next to it whose lowest bit is 2 b.
int parent_in_first_tree(int i, int n) {
  if (i == 0) return no_parent;
  const int bit = i & -i;
  const int parent = (i ^ bit) | (bit << 1);
  return parent < n ? parent : i ^ bit;
}

/// The first tree mirrored, or for odd n turned by one.
int parent_in_second_tree(int i, int n) {
  if (n % 2 == 0) {
    const int parent = parent_in_first_tree(n - 1 - i, n);
    return parent == no_parent ? no_parent : n - 1 - parent;
  }
  const int parent = parent_in_first_tree((i + n - 1) % n, n);
  return parent == no_parent ? no_parent : (parent + 1) % n;
}

device_tree make_tree(const std::vector<std::vector<int>>& nodes, std::size_t head,
                      const std::function<int(int, int)>& parent_of) {
  const int n = static_cast<int>(nodes.size());
  const auto device = [&](int node, std::size_t place) {
    const auto& members = nodes[static_cast<std::size_t>(node)];
    return members[(head + place) % members.size()];
  };
  device_tree tree;
  const std::function<void(int, int)> add = [&](int node, int depth) {
    const auto members = nodes[static_cast<std::size_t>(node)].size();
    for (std::size_t i = 1; i < members; ++i) {
      tree.edges.push_back({device(node, i), device(node, i - 1)});
    }
    tree.depth = std::max(tree.depth, depth + static_cast<int>(members) - 1);
    for (int child = 0; child < n; ++child) {
      if (parent_of(child, n) != node) continue;
      tree.edges.push_back({device(child, 0), device(node, 0)});
      add(child, depth + 1);
    }
  };
  for (int node = 0; node < n; ++node) {
    if (parent_of(node, n) == no_parent) add(node, 0);
  }
  return tree;
}

}  // namespace

std::vector<device_tree> tree_channels(const network& net, const std::vector<int>& members) {
  if (members.size() < 2) return {};
  const auto nodes = by_node(net, members);
  auto channels = nodes[0].size();
  for (const auto& node : nodes) channels = std::min(channels, node.size());
  std::vector<device_tree> trees;
  for (std::size_t head = 0; head < channels; ++head) {
    trees.push_back(make_tree(nodes, head, parent_in_first_tree));
    trees.push_back(make_tree(nodes, head, parent_in_second_tree));
  }
  return trees;
}

}  // namespace attnsim
