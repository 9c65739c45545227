#include "model/cluster/explicit_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/strong_components.hpp>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<vertex_kind, 3> vertex_kinds{{
    {vertex_kind::device, "device"},
    {vertex_kind::nic, "nic"},
    {vertex_kind::switch_, "switch"},
}};
constexpr int most_nodes = 1 << 20;

using length = std::int64_t;
constexpr length unreachable = std::numeric_limits<length>::max();

length length_of(const link& l) {
  constexpr double most_ps = 1e12;
  const double ps = std::min(std::round(l.latency.value() * 1e12), most_ps);
  return static_cast<length>(ps) << 20 | 1;
}

struct edge {
  length weight;
};
using graph_type = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, edge>;

class shortest_path_router : public graph_router {
 public:
  shortest_path_router(const network& net, std::vector<vertex_id> ends, link_id first_link)
      : ends_(std::move(ends)),
        first_link_(first_link),
        links_(net.links().begin() + first_link, net.links().end()),
        into_(net.vertices().size()),
        lengths_(ends_.size()),
        computed_(ends_.size()) {
    std::vector<std::pair<vertex_id, vertex_id>> pairs;
    std::vector<edge> weights;
    for (link_id i = 0; i < links_.size(); ++i) {
      pairs.emplace_back(links_[i].from, links_[i].to);
      weights.push_back({length_of(links_[i])});
      into_[links_[i].to].push_back(i);
    }
    graph_ = graph_type(boost::edges_are_unsorted_multi_pass, pairs.begin(), pairs.end(),
                        weights.begin(), net.vertices().size());
  }

  void route(int from, int to, std::vector<link_id>& path) const override {
    const auto& lengths = lengths_from(from);
    const auto first = path.size();
    auto flow = flow_hash(from, to);
    for (auto at = end(to); at != end(from); at = links_[path.back() - first_link_].from) {
      path.push_back(first_link_ + shortest_link_into(at, lengths, flow));
      flow = flow_hash(static_cast<int>(flow & 0x7fffffff), to);
    }
    std::reverse(path.begin() + static_cast<std::ptrdiff_t>(first), path.end());
  }

  std::int64_t distance(int from, int to) const override { return lengths_from(from)[end(to)]; }

  /// Two ends of which the first cannot reach the second, or nothing.
  std::optional<std::pair<std::size_t, std::size_t>> find_separated() const {
    std::vector<int> component(boost::num_vertices(graph_));
    boost::strong_components(
        graph_, boost::make_iterator_property_map(component.begin(),
                                                  boost::get(boost::vertex_index, graph_)));
    for (std::size_t e = 1; e < ends_.size(); ++e) {
      if (component[ends_[e]] == component[ends_[0]]) continue;
      return lengths_from(0)[ends_[e]] == unreachable ? std::pair{std::size_t{0}, e}
                                                      : std::pair{e, std::size_t{0}};
    }
    return std::nullopt;
  }

 private:
  vertex_id end(int i) const { return ends_[static_cast<std::size_t>(i)]; }

  /// From an end to every vertex; worked out when first asked for.
  const std::vector<length>& lengths_from(int source) const {
    const auto s = static_cast<std::size_t>(source);
    std::call_once(computed_[s], [&] {
      lengths_[s].resize(boost::num_vertices(graph_));
      boost::dijkstra_shortest_paths(
          graph_, end(source),
          boost::weight_map(boost::get(&edge::weight, graph_))
              .distance_map(boost::make_iterator_property_map(
                  lengths_[s].begin(), boost::get(boost::vertex_index, graph_))));
    });
    return lengths_[s];
  }

  link_id shortest_link_into(vertex_id v, const std::vector<length>& lengths,
                             std::uint64_t flow) const {
    const auto on_shortest = [&](link_id i) {
      const auto before = lengths[links_[i].from];
      return before != unreachable && before + length_of(links_[i]) == lengths[v];
    };
    const auto& into = into_[v];
    auto skip =
        flow % static_cast<std::uint64_t>(std::count_if(into.begin(), into.end(), on_shortest));
    return *std::find_if(into.begin(), into.end(),
                         [&](link_id i) { return on_shortest(i) && skip-- == 0; });
  }

  std::vector<vertex_id> ends_;
  link_id first_link_;
  std::vector<link> links_;                 ///< those from the first link on, numbered from it
  std::vector<std::vector<link_id>> into_;  ///< links by the vertex they end at
  graph_type graph_;
  mutable std::vector<std::vector<length>> lengths_;
  mutable std::vector<std::once_flag> computed_;
};

void read_vertices(const config_node& list, network& net, vertex_names& names) {
  for (const auto& item : list.items()) {
    item.allow_only({"name", "kind", "node"});
    const auto name = item.get<std::string>("name");
    const auto kind = item.get_as("kind", [](auto text) { return find_value(vertex_kinds, text); });
    const int node = item.has("node") ? item.get_within("node", 0, most_nodes) : -1;
    const auto id = net.add_vertex({.kind = kind, .node = node, .label = name});
    if (!names.emplace(name, id).second)
      item.fail("name", "expected a name that no other vertex has");
  }
}

void read_link(const config_node& item, const vertex_names& names, network& net) {
  item.allow_only({"from", "to", "bandwidth", "latency", "kind", "duplex"});
  const auto vertex_at = [&](std::string_view key) {
    const auto found = names.find(item.get<std::string>(key));
    if (found == names.end()) item.fail(key, "expected the name of a vertex");
    return found->second;
  };
  const auto from = vertex_at("from"), to = vertex_at("to");
  if (from == to) item.fail("to", "expected another vertex than from");
  const auto rate = item.get<bandwidth>("bandwidth");
  const auto latency = item.get<seconds>("latency", {});
  const auto kind = item.has("kind") ? item.get_as("kind", parse_link_kind) : link_kind::network;
  net.add_link(from, to, rate, latency, kind);
  if (item.get<bool>("duplex", true)) net.add_link(to, from, rate, latency, kind);
}

}  // namespace

void read_graph(const config_node& graph, network& net, vertex_names names) {
  graph.allow_only({"vertices", "links"});
  if (graph.has("vertices") || names.empty()) read_vertices(graph.at("vertices"), net, names);
  if (!graph.has("links")) return;
  for (const auto& item : graph.at("links").items()) read_link(item, names, net);
}

std::unique_ptr<graph_router> make_shortest_path_router(const network& net,
                                                        std::vector<vertex_id> ends,
                                                        link_id first_link,
                                                        const config_node& graph) {
  auto router = std::make_unique<shortest_path_router>(net, ends, first_link);
  if (const auto pair = router->find_separated()) {
    graph.fail("links", fmt::format("no path from {} to {}", net.name(ends[pair->first]),
                                    net.name(ends[pair->second])));
  }
  return router;
}

network build_explicit_graph(const config_node& graph) {
  network net;
  read_graph(graph, net);
  if (net.devices() == 0) {
    graph.at("vertices").fail("", "expected at least one vertex of kind device");
  }
  std::vector<vertex_id> devices;
  for (int d = 0; d < net.devices(); ++d) devices.push_back(net.device(d));
  net.set_router(make_shortest_path_router(net, std::move(devices), 0, graph));
  return net;
}

}  // namespace attnsim
