// GraphML (graphml.graphdrawing.org) with these attributes, as `attnsim topology export` writes
// them: of a node `kind` (device, nic, switch) and `node` (the number of the machine that holds it);
// of an edge `bandwidth` and `latency`, with their units or in bytes/s and seconds, and `kind`
// (nvlink, pcie, network). Other attributes are left out. A node without a kind is a device where it
// has one neighbour, else a switch.
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "formats/exports.hpp"
#include "formats/from_cluster.hpp"
#include "formats/hardware.hpp"
#include "formats/importers/table.hpp"
#include "formats/xml.hpp"
#include "model/named.hpp"

namespace attnsim::formats {
namespace {

constexpr name_table<part_kind, 3> part_kinds{
    {{part_kind::device, "device"}, {part_kind::nic, "nic"}, {part_kind::switch_, "switch"}}};
constexpr int most_nodes = 1 << 20;

class graphml_reader {
 public:
  graphml_reader(const source& from, const settings& given)
      : xml_(from, "graphml"), given_(given) {}

  topology read() {
    t_.what = scope::cluster;
    t_.device = given_.device;
    for (const auto key : xml_.root().children("key")) {
      names_[xml_.text(key, "id")] = xml_.text(key, "attr.name");
    }
    const auto graph = xml_.root().child("graph");
    if (!graph) xml_.fail(xml_.root(), "expected the element <graph>");
    directed_ = std::string_view(graph.attribute("edgedefault").value()) == "directed";
    for (const auto node : graph.children("node")) read_node(node);
    for (const auto edge : graph.children("edge")) read_edge(edge);
    guess_kinds();
    t_.said.read = {fmt::format("{}, {}, {}, {}", counted(t_.count(part_kind::device), "device"),
                                counted(t_.count(part_kind::nic), "NIC"),
                                counted(t_.count(part_kind::switch_), "switch"),
                                counted(t_.cables.size(), "edge"))};
    t_.said.missing = {"the devices' kind: --device"};
    return std::move(t_);
  }

 private:
  using values = std::map<std::string, std::string>;

  values read_data(pugi::xml_node e) const {
    values found;
    for (const auto data : e.children("data")) {
      const auto name = names_.find(xml_.text(data, "key"));
      if (name == names_.end()) xml_.fail(data, "key", "expected the id of a <key>");
      found[name->second] = std::string(trimmed(data.child_value()));
    }
    return found;
  }

  template <typename Parse>
  auto parse_value(pugi::xml_node e, const std::string& key, const std::string& text,
                   Parse parse) const {
    try {
      return parse(text);
    } catch (const std::invalid_argument& problem) {
      xml_.fail(e, fmt::format("<{}> {}: '{}': {}", e.name(), key, text, problem.what()));
    }
  }

  template <typename Quantity>
  Quantity read_quantity(pugi::xml_node e, const std::string& key, const std::string& text,
                         bool zero_allowed) const {
    const auto plain = to_number<double>(text);
    const auto value = plain ? Quantity(*plain) : parse_value(e, key, text, parse<Quantity>);
    const bool fits = value > Quantity{} || (zero_allowed && value == Quantity{});
    if (!fits || value > Quantity(1e18)) {
      xml_.fail(e, fmt::format("<{}> {}: '{}': expected {}", e.name(), key, text,
                               zero_allowed ? "zero or more" : "more than zero"));
    }
    return value;
  }

  void read_node(pugi::xml_node e) {
    const auto id = xml_.text(e, "id");
    const auto data = read_data(e);
    auto kind = part_kind::host;  // guessed later
    if (const auto text = data.find("kind"); text != data.end()) {
      kind = parse_value(e, "kind", text->second,
                         [](const auto& name) { return find_value(part_kinds, name); });
    }
    int node = -1;
    if (const auto text = data.find("node"); text != data.end()) {
      const auto number = to_number<int>(text->second);
      if (!number || *number < 0 || *number > most_nodes) {
        xml_.fail(e, fmt::format("<node> node: '{}': expected a whole number from 0 to {}",
                                 text->second, most_nodes));
      }
      node = *number;
    }
    if (!parts_.emplace(id, t_.add(kind, id, node)).second) {
      xml_.fail(e, "id", "expected an id that no other node has");
    }
  }

  std::size_t end_of(pugi::xml_node e, const char* key) const {
    const auto found = parts_.find(xml_.text(e, key));
    if (found == parts_.end()) xml_.fail(e, key, "expected the id of a <node>");
    return found->second;
  }

  void read_edge(pugi::xml_node e) {
    const auto from = end_of(e, "source"), to = end_of(e, "target");
    if (from == to) xml_.fail(e, "target", "expected another node than the source");
    const auto data = read_data(e);
    auto rate = given_.nic_rate;
    if (const auto text = data.find("bandwidth"); text != data.end()) {
      rate = read_quantity<bandwidth>(e, "bandwidth", text->second, false);
    } else if (rate == bandwidth{}) {
      xml_.fail(e, "<edge> bandwidth: missing; --nic-bandwidth gives one to all such edges");
    }
    seconds latency = known_hardware().switch_latency;
    if (const auto text = data.find("latency"); text != data.end()) {
      latency = read_quantity<seconds>(e, "latency", text->second, true);
    }
    auto kind = link_kind::network;
    if (const auto text = data.find("kind"); text != data.end()) {
      kind = parse_value(e, "kind", text->second, parse_link_kind);
    }
    const std::string_view directed = e.attribute("directed").value();
    t_.join(from, to, rate, latency, kind, directed.empty() ? !directed_ : directed != "true");
  }

  void guess_kinds() {
    const auto cables = cables_of_parts(t_);
    std::size_t guessed = 0;
    for (std::size_t i = 0; i < t_.parts.size(); ++i) {
      if (t_.parts[i].kind != part_kind::host) continue;
      t_.parts[i].kind = cables[i].size() == 1 ? part_kind::device : part_kind::switch_;
      ++guessed;
    }
    if (guessed > 0) {
      t_.said.assumed = {fmt::format("{} without a kind: a device at one edge, else a switch",
                                     counted(guessed, "node"))};
    }
  }

  xml_file xml_;
  const settings& given_;
  topology t_;
  bool directed_ = false;
  std::map<std::string, std::string> names_;  ///< of attributes, by key
  std::map<std::string, std::size_t> parts_;
};

topology read_graphml(const source& from, const settings& given) {
  return graphml_reader(from, given).read();
}

}  // namespace

const importer importers::graphml{
    .name = "graphml",
    .what = "GraphML",
    .reads =
        "nodes with kind and machine, edges with bandwidth, latency and kind, as attnsim writes "
        "them",
    .assumes = "a node without a kind is a device at one edge, else a switch; latency of a switch",
    .refuses = "edges without a bandwidth, edges to nodes that are not there",
    .recognises = [](std::string_view text) { return xml_root_name(text) == "graphml"; },
    .read = read_graphml,
};

std::string write_graphml(const cluster& c) {
  pugi::xml_document document;
  auto root = document.append_child("graphml");
  root.append_attribute("xmlns") = "http://graphml.graphdrawing.org/xmlns";
  const auto add_key = [&](const char* id, const char* owner, const char* name, const char* type) {
    auto key = root.append_child("key");
    key.append_attribute("id") = id;
    key.append_attribute("for") = owner;
    key.append_attribute("attr.name") = name;
    key.append_attribute("attr.type") = type;
  };
  add_key("part", "node", "kind", "string");
  add_key("node", "node", "node", "int");
  add_key("bandwidth", "edge", "bandwidth", "double");  // bytes/s
  add_key("latency", "edge", "latency", "double");      // s
  add_key("link", "edge", "kind", "string");
  auto graph = root.append_child("graph");
  graph.append_attribute("id") = c.name.c_str();
  graph.append_attribute("edgedefault") = "undirected";
  const auto add_data = [](pugi::xml_node to, const char* key, const std::string& value) {
    auto data = to.append_child("data");
    data.append_attribute("key") = key;
    data.text() = value.c_str();
  };
  const auto t = from_cluster(c);
  for (const auto& p : t.parts) {
    auto node = graph.append_child("node");
    node.append_attribute("id") = p.name.c_str();
    add_data(node, "part", std::string(find_name(part_kinds, p.kind)));
    if (p.node >= 0) add_data(node, "node", std::to_string(p.node));
  }
  for (const auto& l : t.cables) {
    auto edge = graph.append_child("edge");
    edge.append_attribute("source") = t.parts[l.from].name.c_str();
    edge.append_attribute("target") = t.parts[l.to].name.c_str();
    if (!l.duplex) edge.append_attribute("directed") = "true";
    add_data(edge, "bandwidth", fmt::format("{}", l.rate.value()));
    add_data(edge, "latency", fmt::format("{}", l.latency.value()));
    add_data(edge, "link", std::string(name_of(l.kind)));
  }
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

}  // namespace attnsim::formats
