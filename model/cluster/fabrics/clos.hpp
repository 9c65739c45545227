// A folded Clos network: leaf switches joined by spines (two levels), or by the aggregation
// switches of their pod and by cores above (three levels). Every leaf has a link to every spine of
// its pod.
//
//   levels: 2              # or 3
//   nodes_per_leaf: 32     # nodes that share a leaf
//   oversubscription: 1    # bandwidth of a leaf's NICs over that of its uplinks; any ratio from 1
//   radix: 64              # ports of a switch: the sizes that are not given follow from it
//   routing: ecmp          # or d-mod-k: the destination's number picks the spine, evenly
//   leaves_per_pod: 32     # three levels only
//   core_oversubscription: 1
//   bandwidth, latency     # of an uplink
//
// The number of uplinks is the smallest that reaches the ratio at the given bandwidth; their
// bandwidth is then lowered to meet the ratio exactly. Without `radix` switches have the ports they
// need.
#pragma once

#include "model/cluster/fabrics/fabric.hpp"

namespace attnsim {

class clos : public fabric {
 public:
  /// Nodes are taken in groups of nodes_per_leaf. A group has `leaves_per_group` leaves and NIC i
  /// of its nodes is on leaf i mod leaves_per_group: one for a fat tree, one a rail for rails.
  clos(const config_node&, const fabric_site&, int leaves_per_group);

  void route(int from, int to, std::uint64_t flow, std::vector<link_id>& path) const override;

 private:
  void read_leaves(const config_node&, const fabric_site&);
  void read_pods(const config_node&);
  void check_ports(const config_node&) const;
  void build(const fabric_site&);
  int leaf_of(int nic) const {
    const int node = nic / nics_per_node_;
    return node / nodes_per_leaf_ * leaves_per_group_ + nic % nics_per_node_ % leaves_per_group_;
  }

  /// Consecutive along the NICs of a leaf and from one leaf of a rail to the next.
  std::uint64_t number_on_leaves(int nic) const {
    const int node = nic / nics_per_node_, place = nic % nics_per_node_ / leaves_per_group_;
    return static_cast<std::uint64_t>(node * (nics_per_leaf_ / nodes_per_leaf_) + place);
  }

  int nics_per_node_;
  int leaves_per_group_;
  int radix_;  ///< 0: no limit
  bool by_destination_;
  int nodes_per_leaf_ = 0;
  int nics_per_leaf_ = 0;
  int leaves_ = 0;
  int uplinks_ = 0;         ///< of a leaf; spines of a pod
  int leaves_per_pod_ = 0;  ///< all of them with two levels
  int pods_ = 0;
  int core_uplinks_ = 0;  ///< of a spine
  bandwidth rate_, uplink_rate_, core_rate_;
  seconds latency_;
  nic_links nics_;
  link_id first_uplink_ = 0, first_core_ = 0;
};

}  // namespace attnsim
