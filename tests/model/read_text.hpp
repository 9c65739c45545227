// What the tests of networks share: a cluster from text, and its routes as names.
#pragma once

#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"

namespace attnsim {

inline cluster read_text(const std::string& text) {
  return read_cluster(config_node::parse_text(text, "c.yaml"));
}

/// The names of the vertices that a route visits.
inline std::vector<std::string> stops(const network& net, int from, int to) {
  std::vector<link_id> path;
  net.route(from, to, path);
  std::vector<std::string> names{net.name(net.device(from))};
  for (const auto id : path) names.push_back(net.name(net.links()[id].to));
  return names;
}

inline std::vector<link_id> route_of(const network& net, int from, int to) {
  std::vector<link_id> path;
  net.route(from, to, path);
  return path;
}

inline seconds latency_of(const network& net, int from, int to) {
  seconds sum;
  for (const auto id : route_of(net, from, to)) sum += net.links()[id].latency;
  return sum;
}

}  // namespace attnsim
