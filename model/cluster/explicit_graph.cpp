#include "model/cluster/explicit_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/property_map/function_property_map.hpp>
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
constexpr int highest_node = 1 << 20;

using length = std::int64_t;
constexpr length unreachable = std::numeric_limits<length>::max();

length length_of(const link& l) {
  constexpr double most_ps = 1e12;
  const double ps = std::min(std::round(l.latency.value() * 1e12), most_ps);
  return static_cast<length>(ps) << 20 | 1;
}

struct edge {
  link_id number = 0;  ///< among the router's links
};
using graph_type = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, edge>;

/// The links that routes run over, by what they start and end at.
class link_graph {
 public:
  link_graph(const network& net, link_id first_link)
      : first_link_(first_link),
        vertices_(net.vertices().begin(), net.vertices().end()),
        links_(net.links().begin() + first_link, net.links().end()),
        into_(net.vertices().size()) {
    std::vector<std::pair<vertex_id, vertex_id>> pairs;
    std::vector<edge> edges;
    for (link_id i = 0; i < links_.size(); ++i) {
      pairs.emplace_back(links_[i].from, links_[i].to);
      edges.push_back({i});
      into_[links_[i].to].push_back(i);
    }
    graph_ = graph_type(boost::edges_are_unsorted_multi_pass, pairs.begin(), pairs.end(),
                        edges.begin(), net.vertices().size());
  }

  const graph_type& edges() const { return graph_; }
  std::size_t vertices() const { return vertices_.size(); }
  const vertex& at(vertex_id v) const { return vertices_[v]; }
  const link& operator[](link_id i) const { return links_[i]; }
  const std::vector<link_id>& into(vertex_id v) const { return into_[v]; }
  link_id first_link() const { return first_link_; }
  bool has(link_kind kind) const {
    return std::any_of(links_.begin(), links_.end(), [&](const link& l) { return l.kind == kind; });
  }

 private:
  link_id first_link_;
  std::vector<vertex> vertices_;
  std::vector<link> links_;                 ///< those from the first link on, numbered from it
  std::vector<std::vector<link_id>> into_;  ///< by the vertex they end at
  graph_type graph_;
};

/// Which links a path may use, and what it may pass through besides switches.
struct rule {
  link_kind slowest = link_kind::network;
  bool through_devices = true, through_nics = true;

  bool allows(const link& l, const vertex& start, bool is_source) const {
    if (l.kind > slowest) return false;
    return is_source || start.kind == vertex_kind::switch_ ||
           (start.kind == vertex_kind::device ? through_devices : through_nics);
  }
};

/// Shortest paths under one rule from each of some ends; worked out when first asked for.
class shortest_paths {
 public:
  shortest_paths(const link_graph& links, std::vector<vertex_id> ends, rule r)
      : links_(links),
        ends_(std::move(ends)),
        rule_(r),
        lengths_(ends_.size()),
        computed_(ends_.size()) {}

  length distance(int from, int to) const { return lengths_from(from)[end(to)]; }

  /// Appends the links of a path that exists; the flow chooses among equal ones.
  void append(int from, int to, std::uint64_t flow, std::vector<link_id>& path) const {
    const auto& lengths = lengths_from(from);
    const auto first = static_cast<std::ptrdiff_t>(path.size());
    for (auto at = end(to); at != end(from); at = links_[path.back() - links_.first_link()].from) {
      path.push_back(links_.first_link() + shortest_link_into(at, end(from), lengths, flow));
      flow = flow_hash(static_cast<int>(flow & 0x7fffffff), to);
    }
    std::reverse(path.begin() + first, path.end());
  }

 private:
  vertex_id end(int i) const { return ends_[static_cast<std::size_t>(i)]; }

  bool allows(link_id i, vertex_id source) const {
    const auto start = links_[i].from;
    return rule_.allows(links_[i], links_.at(start), start == source);
  }

  const std::vector<length>& lengths_from(int from) const {
    const auto s = static_cast<std::size_t>(from);
    std::call_once(computed_[s], [&] {
      const auto& graph = links_.edges();
      const auto weight = [&](const graph_type::edge_descriptor& e) {
        const auto i = graph[e].number;
        return allows(i, end(from)) ? length_of(links_[i]) : unreachable;
      };
      const auto index = boost::get(boost::vertex_index, graph);
      lengths_[s].resize(links_.vertices());
      boost::dijkstra_shortest_paths(
          graph, end(from),
          boost::weight_map(
              boost::make_function_property_map<graph_type::edge_descriptor, length>(weight))
              .distance_map(boost::make_iterator_property_map(lengths_[s].begin(), index))
              .distance_combine(boost::closed_plus<length>(unreachable)));
    });
    return lengths_[s];
  }

  link_id shortest_link_into(vertex_id v, vertex_id source, const std::vector<length>& lengths,
                             std::uint64_t flow) const {
    const auto on_shortest = [&](link_id i) {
      const auto before = lengths[links_[i].from];
      return before != unreachable && before + length_of(links_[i]) == lengths[v] &&
             allows(i, source);
    };
    const auto& into = links_.into(v);
    auto skip =
        flow % static_cast<std::uint64_t>(std::count_if(into.begin(), into.end(), on_shortest));
    return *std::find_if(into.begin(), into.end(),
                         [&](link_id i) { return on_shortest(i) && skip-- == 0; });
  }

  const link_graph& links_;
  std::vector<vertex_id> ends_;
  rule rule_;
  mutable std::vector<std::vector<length>> lengths_;
  mutable std::vector<std::once_flag> computed_;
};

/// The rules of the header, in their order.
class ruled_router : public graph_router {
 public:
  ruled_router(const network& net, std::vector<vertex_id> ends, link_id first_link, bool one_node)
      : links_(net, first_link),
        ends_(std::move(ends)),
        one_node_(one_node),
        has_nvlink_(links_.has(link_kind::nvlink)),
        nvlink_(links_, ends_, {link_kind::nvlink, false, false}),
        switches_(links_, ends_, {link_kind::host_memory, false, false}),
        devices_(links_, ends_, {link_kind::host_memory, true, false}),
        any_(links_, ends_, {}) {}

  void route(int from, int to, std::vector<link_id>& path) const override {
    const auto flow = flow_hash(from, to);
    const auto [number, by, length] = find(from, to);
    if (number != by_one_device) return by->append(from, to, flow, path);
    const int between = widest_between(from, to, length, flow);
    nvlink_.append(from, between, flow, path);
    nvlink_.append(between, to, flow, path);
  }

  distance_type distance(int from, int to) const override {
    const auto found = find(from, to);
    return {found.number, found.distance};
  }

  /// Two ends of which the first cannot reach the second, or nothing.
  std::optional<std::pair<std::size_t, std::size_t>> find_separated() const {
    std::vector<int> component(links_.vertices());
    boost::strong_components(
        links_.edges(), boost::make_iterator_property_map(
                            component.begin(), boost::get(boost::vertex_index, links_.edges())));
    for (std::size_t e = 1; e < ends_.size(); ++e) {
      if (component[ends_[e]] == component[ends_[0]]) continue;
      return any_.distance(0, static_cast<int>(e)) == unreachable ? std::pair{std::size_t{0}, e}
                                                                  : std::pair{e, std::size_t{0}};
    }
    return std::nullopt;
  }

 private:
  static constexpr int by_one_device = 2;

  struct choice {
    int number = 0;  ///< of the rule
    const shortest_paths* by = nullptr;
    length distance = unreachable;
  };

  const vertex& end(int i) const { return links_.at(ends_[static_cast<std::size_t>(i)]); }
  bool is_device(int i) const { return end(i).kind == vertex_kind::device; }
  bool in_one_node(int a, int b) const {
    return one_node_ || (end(a).node >= 0 && end(a).node == end(b).node);
  }

  choice find(int from, int to) const {
    const bool inside = in_one_node(from, to) && (is_device(from) || is_device(to));
    if (inside && is_device(from) && is_device(to) && has_nvlink_) {
      if (const auto d = nvlink_.distance(from, to); d != unreachable) return {1, &nvlink_, d};
      if (const auto d = by_way_of_one(from, to); d != unreachable)
        return {by_one_device, &nvlink_, d};
    }
    if (inside) {
      if (const auto d = switches_.distance(from, to); d != unreachable) return {3, &switches_, d};
      if (const auto d = devices_.distance(from, to); d != unreachable) return {4, &devices_, d};
    }
    return {5, &any_, any_.distance(from, to)};
  }

  length over(int from, int between, int to) const {
    if (between == from || between == to || !is_device(between) || !in_one_node(from, between))
      return unreachable;
    const auto first = nvlink_.distance(from, between), second = nvlink_.distance(between, to);
    return first == unreachable || second == unreachable ? unreachable : first + second;
  }

  length by_way_of_one(int from, int to) const {
    auto least = unreachable;
    for (int d = 0; d < static_cast<int>(ends_.size()); ++d)
      least = std::min(least, over(from, d, to));
    return least;
  }

  bandwidth width(int from, int to) const {
    std::vector<link_id> path;
    nvlink_.append(from, to, 0, path);
    bandwidth narrowest(std::numeric_limits<double>::max());
    for (const auto i : path)
      narrowest = std::min(narrowest, links_[i - links_.first_link()].capacity);
    return narrowest;
  }

  /// Of the devices at the least distance between two: the flow's of those with the widest links.
  int widest_between(int from, int to, length least, std::uint64_t flow) const {
    std::vector<int> best;
    bandwidth most;
    for (int d = 0; d < static_cast<int>(ends_.size()); ++d) {
      if (over(from, d, to) != least) continue;
      const auto w = std::min(width(from, d), width(d, to));
      if (w > most) best.clear();
      if (w >= most) best.push_back(d);
      most = std::max(most, w);
    }
    return best[flow % best.size()];
  }

  link_graph links_;
  std::vector<vertex_id> ends_;
  bool one_node_, has_nvlink_;
  shortest_paths nvlink_, switches_, devices_, any_;
};

void read_vertices(const config_node& list, network& net, vertex_names& names) {
  for (const auto& item : list.items()) {
    item.allow_only({"name", "kind", "node"});
    const auto name = item.get<std::string>("name");
    const auto kind = item.get_as("kind", [](auto text) { return find_value(vertex_kinds, text); });
    const int node = item.has("node") ? item.get_within("node", 0, highest_node) : -1;
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

std::unique_ptr<graph_router> make_graph_router(const network& net, std::vector<vertex_id> ends,
                                                link_id first_link, bool one_node,
                                                const config_node& graph) {
  auto router = std::make_unique<ruled_router>(net, ends, first_link, one_node);
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
  net.set_router(make_graph_router(net, std::move(devices), 0, false, graph));
  return net;
}

}  // namespace attnsim
