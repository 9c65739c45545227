#include "model/cluster/rings.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace attnsim {
namespace {

bool directly_linked(const network& net, const std::vector<int>& members) {
  std::vector<link_id> path;
  for (std::size_t i = 1; i < members.size(); ++i) {
    path.clear();
    net.route(members[0], members[i], path);
    if (path.size() != 1) return false;
  }
  return true;
}

std::vector<std::vector<int>> strided_rings(const std::vector<int>& members) {
  const auto n = members.size();
  std::vector<std::vector<int>> rings;
  for (std::size_t stride = 1; stride < n || rings.empty(); ++stride) {
    if (std::gcd(stride, n) != 1) continue;
    std::vector<int> ring;
    for (std::size_t i = 0; i < n; ++i) ring.push_back(members[i * stride % n]);
    rings.push_back(std::move(ring));
  }
  return rings;
}

std::vector<std::vector<int>> rings_over_nodes(const std::vector<std::vector<int>>& nodes) {
  std::size_t channels = nodes[0].size();
  for (const auto& node : nodes) channels = std::min(channels, node.size());
  std::vector<std::vector<int>> rings(channels);
  for (std::size_t k = 0; k < channels; ++k) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto node = nodes[i];
      std::rotate(node.begin(), node.begin() + static_cast<std::ptrdiff_t>(k), node.end());
      if (i % 2 == 1) std::reverse(node.begin(), node.end());
      rings[k].insert(rings[k].end(), node.begin(), node.end());
    }
  }
  return rings;
}

}  // namespace

std::vector<std::vector<int>> by_node(const network& net, const std::vector<int>& members) {
  std::map<int, std::size_t> number;
  std::vector<std::vector<int>> nodes;
  for (const int m : members) {
    const auto [where, is_new] = number.try_emplace(net.node_of(m), nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[where->second].push_back(m);
  }
  return nodes;
}

std::vector<std::vector<int>> ring_channels(const network& net, const std::vector<int>& members) {
  if (members.size() < 2) return {};
  const auto nodes = by_node(net, members);
  if (nodes.size() == 1 && directly_linked(net, members)) return strided_rings(members);
  if (nodes.size() == 1) return {members};
  return rings_over_nodes(nodes);
}

}  // namespace attnsim
