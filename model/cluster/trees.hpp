// The trees that NCCL lays through a group of devices for its tree all-reduce: a double binary tree
// over the nodes (Sanders, Speck, Traff: Two-tree algorithms for full bandwidth broadcast, reduction
// and scan, 2009: who is inner in one tree is a leaf in the other), and a chain within each node.
// Every channel is one tree over all members and carries an equal share of the data; each member of
// a node heads the chain of one channel of either tree, so the NICs carry equal shares.
#pragma once

#include <vector>

#include "model/cluster/network.hpp"

namespace attnsim {

struct device_tree {
  struct edge {
    int child;  ///< device numbers
    int parent;
  };
  std::vector<edge> edges;  ///< every edge before those of its child's children
  int depth = 0;            ///< edges from the root to the farthest device
};

/// One tree a channel; none for groups of one. Nodes give as many channels as the smallest has
/// members.
std::vector<device_tree> tree_channels(const network&, const std::vector<int>& members);

}  // namespace attnsim
