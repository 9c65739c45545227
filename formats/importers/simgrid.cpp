// SimGrid platforms (XML, version 4): <cluster> with the topologies FLAT (a star, or a backbone that
// all share), FAT_TREE, TORUS and DRAGONFLY, and zones of <host>, <router>, <link> and <route> of one
// link each (routing Floyd, Dijkstra and the like), as `attnsim topology export` writes them: then
// <prop id="attnsim.kind"> of a link tells its kind, and names "nodeN.nicI" what a router is. A host
// is a device and a node of its own. Links without direction get their bandwidth each way. Left out:
// speeds, loopbacks, limiters. simgrid.org/doc/latest/Platform_examples.html, XML_reference.html;
// the dragonfly as in src/kernel/routing/DragonflyZone.cpp
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "formats/exports.hpp"
#include "formats/fat_tree.hpp"
#include "formats/from_cluster.hpp"
#include "formats/importers/table.hpp"
#include "formats/xml.hpp"

namespace attnsim::formats {
namespace {

constexpr double most_value = 1e18;

using element = pugi::xml_node;

double prefix_factor(std::string_view prefix) {
  constexpr std::string_view letters = "kMGTP";
  if (prefix.empty()) return 1;
  const bool binary = prefix.size() == 2 && prefix[1] == 'i';
  const auto place = prefix == "Ki" ? 0 : letters.find(prefix.front());
  if (place == std::string_view::npos || (prefix.size() > 1 && !binary)) return 0;
  double factor = 1;
  for (std::size_t i = 0; i <= place; ++i) factor *= binary ? 1024 : 1000;
  return factor;
}

/// "125MBps" or "1Gbps" in bytes/s; zero: malformed.
double parse_rate(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{}) return 0;
  if (unit.empty()) return value;
  if (!unit.ends_with("Bps") && !unit.ends_with("bps")) return 0;
  const double size = unit.ends_with("Bps") ? 1 : 1.0 / 8;
  return value * size * prefix_factor(unit.substr(0, unit.size() - 3));
}

/// "50us" in seconds; negative: malformed.
double parse_time(std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : units) {
    if (error == std::errc{} && name == unit) return value * factor;
  }
  return -1;
}

struct named_link {
  bandwidth rate;
  seconds latency;
  link_kind kind = link_kind::network;
};

class simgrid_reader {
 public:
  simgrid_reader(const source& from, const settings& given) : xml_(from, "platform") {
    t_.what = scope::cluster;
    t_.device = given.device;
  }

  topology read() {
    read_zone(xml_.root());
    if (t_.count(part_kind::device) == 0) xml_.fail(xml_.root(), "expected at least one <host>");
    t_.said.read = {fmt::format("{}, {}, {}", counted(t_.count(part_kind::device), "host"),
                                counted(t_.count(part_kind::switch_), "switch"),
                                counted(t_.cables.size(), "link"))};
    t_.said.assumed.insert(t_.said.assumed.begin(), "a host is a device and a node of its own");
    t_.said.missing = {"the devices' kind: --device; speeds of hosts are left out"};
    return std::move(t_);
  }

 private:
  void read_zone(element zone) {
    for (const auto e : zone.children()) {
      if (e.type() != pugi::node_element) continue;
      const std::string_view name = e.name();
      if (name == "zone" || name == "AS") {
        read_zone(e);
      } else if (name == "cluster") {
        read_cluster(e);
      } else if (name == "host") {
        add_host(e, xml_.text(e, "id"));
      } else if (name == "router") {
        add_router(e);
      } else if (name == "link") {
        read_link(e);
      } else if (name == "route") {
        read_route(e);
      } else if (name != "prop" && name != "config") {
        xml_.fail(e,
                  fmt::format("<{}>: expected zone, cluster, host, router, link or route", name));
      }
    }
  }

  bandwidth rate(element e, const char* key) const {
    const double value = parse_rate(xml_.text(e, key));
    if (!(value > 0 && value < most_value)) {
      xml_.fail(e, key, "expected a bandwidth, such as 125MBps or 1Gbps");
    }
    return bandwidth(value);
  }

  seconds latency(element e, const char* key) const {
    const double value = parse_time(xml_.text(e, key));
    if (!(value >= 0 && value < most_value)) xml_.fail(e, key, "expected a time, such as 50us");
    return seconds(value);
  }

  std::size_t add_host(element e, const std::string& name) {
    int node = static_cast<int>(devices_);
    for (const auto prop : e.children("prop")) {
      if (std::string_view(prop.attribute("id").value()) == "attnsim.node")
        node = xml_.integer(prop, "value", 0, static_cast<int>(most_parts));
    }
    return add(e, name, part_kind::device, node);
  }

  void add_router(element e) {
    const auto name = xml_.text(e, "id");
    const auto dot = name.find('.');
    const auto node = name.starts_with("node") && dot != std::string::npos
                          ? to_number<int>(std::string_view(name).substr(4, dot - 4))
                          : std::nullopt;
    const bool is_nic = node && name.compare(dot + 1, 3, "nic") == 0;
    add(e, name, is_nic ? part_kind::nic : part_kind::switch_, node && *node >= 0 ? *node : -1);
  }

  std::size_t add(element e, const std::string& name, part_kind kind, int node) {
    const auto part = t_.add(kind, name, node);
    devices_ += kind == part_kind::device;
    if (!parts_.emplace(name, part).second) {
      xml_.fail(e, "id", "expected a name that no other host or router has");
    }
    return part;
  }

  void read_link(element e) {
    named_link l{rate(e, "bandwidth"), latency_or_zero(e, "latency")};
    for (const auto prop : e.children("prop")) {
      if (std::string_view(prop.attribute("id").value()) != "attnsim.kind") continue;
      try {
        l.kind = parse_link_kind(xml_.text(prop, "value"));
      } catch (const std::invalid_argument& problem) {
        xml_.fail(prop, "value", problem.what());
      }
    }
    if (!links_.emplace(xml_.text(e, "id"), l).second) {
      xml_.fail(e, "id", "expected a name that no other link has");
    }
  }

  seconds latency_or_zero(element e, const char* key) const {
    return e.attribute(key) ? latency(e, key) : seconds{};
  }

  std::size_t end_of(element route, const char* key) const {
    const auto found = parts_.find(xml_.text(route, key));
    if (found == parts_.end()) xml_.fail(route, key, "expected the name of a host or router");
    return found->second;
  }

  void read_route(element e) {
    const auto first = e.child("link_ctn");
    if (!first || first.next_sibling("link_ctn")) {
      xml_.fail(e, "<route>: expected one <link_ctn>, as with the routing Floyd or Dijkstra");
    }
    const auto found = links_.find(xml_.text(first, "id"));
    if (found == links_.end()) xml_.fail(first, "id", "expected the name of a link");
    const auto from = end_of(e, "src"), to = end_of(e, "dst");
    if (from == to) xml_.fail(e, "dst", "expected another end than src");
    const std::string_view symmetrical = e.attribute("symmetrical").value();
    const auto& l = found->second;
    t_.join(from, to, l.rate, l.latency, l.kind, symmetrical != "NO" && symmetrical != "no");
  }

  // --- Clusters. ---

  /// "0-3,8" as numbers.
  std::vector<int> read_radical(element e) const {
    std::vector<int> numbers;
    const auto text = xml_.text(e, "radical");
    for (const auto range : split(text, ',')) {
      const auto dash = range.find('-');
      const auto first = to_number<int>(range.substr(0, dash));
      const auto last =
          dash == std::string_view::npos ? first : to_number<int>(range.substr(dash + 1));
      if (!first || !last || *first < 0 || *last < *first) {
        xml_.fail(e, "radical", "expected numbers, such as 0-15");
      }
      if (static_cast<std::size_t>(*last - *first) + numbers.size() >= most_parts) {
        xml_.fail(e, "radical", fmt::format("expected at most {} hosts", most_parts));
      }
      for (int n = *first; n <= *last; ++n) numbers.push_back(n);
    }
    return numbers;
  }

  void read_cluster(element e) {
    std::vector<std::size_t> hosts;
    for (const int n : read_radical(e)) {
      hosts.push_back(
          add_host(e, xml_.text(e, "prefix") + std::to_string(n) + xml_.text(e, "suffix")));
    }
    const auto bw = rate(e, "bw");
    const auto lat = latency(e, "lat");
    const std::string topology = e.attribute("topology").value();
    if (topology.empty() || topology == "FLAT") {
      add_flat(e, hosts, bw, lat);
    } else if (topology == "FAT_TREE") {
      add_tree(e, hosts, bw, lat);
    } else if (topology == "DRAGONFLY") {
      add_dragonfly(e, hosts, bw, lat);
    } else if (topology == "TORUS") {
      add_torus(e, hosts, bw, lat);
    } else {
      xml_.fail(e, "topology", "expected FLAT, FAT_TREE, DRAGONFLY or TORUS");
    }
    for (const auto* key : {"loopback_bw", "limiter_link"}) {
      if (e.attribute(key)) t_.said.assumed.push_back(fmt::format("{} is left out", key));
    }
  }

  std::string id_of(element e) const { return xml_.text(e, "id"); }

  /// A backbone is one link that all messages cross, in one direction from all to all.
  void add_flat(element e, const std::vector<std::size_t>& hosts, bandwidth bw, seconds lat) {
    const auto in = t_.add(part_kind::switch_, id_of(e) + (e.attribute("bb_bw") ? ".in" : ".hub"));
    if (!e.attribute("bb_bw")) {
      for (const auto h : hosts) t_.join(h, in, bw, lat, link_kind::network);
      return;
    }
    const auto out = t_.add(part_kind::switch_, id_of(e) + ".out");
    t_.join(in, out, rate(e, "bb_bw"), latency(e, "bb_lat"), link_kind::network, false);
    for (const auto h : hosts) {
      t_.join(h, in, bw, lat, link_kind::network, false);
      t_.join(out, h, bw, lat, link_kind::network, false);
    }
  }

  /// "2;4,4;1,2" as lists of whole numbers from 1.
  std::vector<std::vector<std::size_t>> parameters(element e, std::size_t lists,
                                                   const char* expected) const {
    std::vector<std::vector<std::size_t>> result;
    const auto text = xml_.text(e, "topo_parameters");
    for (const auto list : split(text, ';')) {
      result.emplace_back();
      for (const auto item : split(list, ',')) {
        const auto n = to_number<std::size_t>(item);
        if (!n || *n < 1 || *n > most_parts) xml_.fail(e, "topo_parameters", expected);
        result.back().push_back(*n);
      }
    }
    if (result.size() != lists) xml_.fail(e, "topo_parameters", expected);
    return result;
  }

  void check_hosts(element e, const std::vector<std::size_t>& hosts,
                   std::initializer_list<std::vector<std::size_t>> factors) const {
    std::size_t product = 1;
    for (const auto& list : factors) {
      for (const auto f : list) product = std::min(product * f, most_parts + 1);
    }
    if (product != hosts.size()) {
      xml_.fail(e, "radical",
                fmt::format("expected as many hosts as topo_parameters make, {}",
                            product > most_parts ? "too many" : std::to_string(product)));
    }
  }

  void add_tree(element e, const std::vector<std::size_t>& hosts, bandwidth bw, seconds lat) {
    constexpr const char* expected =
        "expected levels;children;parents;cables, such as 2;4,4;1,2;1,2";
    const auto p = parameters(e, 4, expected);
    const auto levels = p[0].front();
    for (const auto i : {1, 2, 3}) {
      if (p[static_cast<std::size_t>(i)].size() != levels)
        xml_.fail(e, "topo_parameters", expected);
    }
    check_hosts(e, hosts, {p[1]});
    std::vector<fat_tree_level> tree;
    for (std::size_t l = 0; l < levels; ++l) tree.push_back({p[1][l], p[2][l], p[3][l], bw, lat});
    add_fat_tree(t_, hosts, tree);
  }

  void add_torus(element e, const std::vector<std::size_t>& hosts, bandwidth bw, seconds lat) {
    const auto extents = parameters(e, 1, "expected extents, such as 4,4,2").front();
    check_hosts(e, hosts, {extents});
    std::size_t stride = 1;  // the first dimension varies fastest
    for (const auto extent : extents) {
      for (std::size_t i = 0; i < hosts.size() && extent > 1; ++i) {
        const auto at = i / stride % extent;
        if (at + 1 == extent && extent == 2) continue;
        const auto next = i - at * stride + (at + 1) % extent * stride;
        t_.join(hosts[i], hosts[next], bw, lat, link_kind::network);
      }
      stride *= extent;
    }
  }

  /// groups,cables; chassis,cables; routers,cables; hosts a router. Router n of a group leads to
  /// group n.
  void add_dragonfly(element e, const std::vector<std::size_t>& hosts, bandwidth bw, seconds lat) {
    constexpr const char* expected =
        "expected groups,cables;chassis,cables;routers,cables;nodes, such as 3,4;4,3;5,1;2";
    const auto p = parameters(e, 4, expected);
    if (p[0].size() != 2 || p[1].size() != 2 || p[2].size() != 2 || p[3].size() != 1) {
      xml_.fail(e, "topo_parameters", expected);
    }
    const auto groups = p[0][0], chassis = p[1][0], blades = p[2][0], nodes = p[3][0];
    check_hosts(e, hosts, {{groups, chassis, blades, nodes}});
    const auto in_group = chassis * blades;
    if (in_group < groups) {
      xml_.fail(e, "topo_parameters", "expected a router of each group for every other group");
    }
    std::vector<std::size_t> routers;
    for (std::size_t r = 0; r < groups * in_group; ++r) {
      routers.push_back(t_.add(part_kind::switch_, fmt::format("{}.router{}", id_of(e), r)));
      for (std::size_t n = 0; n < nodes; ++n) {
        t_.join(hosts[r * nodes + n], routers[r], bw, lat, link_kind::network);
      }
    }
    const auto join = [&](std::size_t a, std::size_t b, std::size_t cables) {
      t_.join(routers[a], routers[b], bw * static_cast<double>(cables), lat, link_kind::network);
    };
    for (std::size_t g = 0; g < groups; ++g) {
      for (std::size_t a = 0; a < in_group; ++a) {
        for (std::size_t b = a + 1; b < in_group; ++b) {
          if (a / blades == b / blades) join(g * in_group + a, g * in_group + b, p[2][1]);
          if (a % blades == b % blades) join(g * in_group + a, g * in_group + b, p[1][1]);
        }
      }
      for (std::size_t h = g + 1; h < groups; ++h) {
        join(g * in_group + h, h * in_group + g, p[0][1]);
      }
    }
  }

  xml_file xml_;
  topology t_;
  std::size_t devices_ = 0;
  std::map<std::string, std::size_t> parts_;
  std::map<std::string, named_link> links_;
};

topology read_simgrid(const source& from, const settings& given) {
  return simgrid_reader(from, given).read();
}

}  // namespace

const importer importers::simgrid{
    .name = "simgrid",
    .what = "SimGrid platform XML",
    .reads =
        "clusters of all topologies, zones of hosts, routers, links and routes of one link each",
    .assumes =
        "a host is a device and a node of its own, unless attnsim wrote the file; speeds, "
        "loopbacks and limiters are left out",
    .refuses = "routes of several links, other elements and routings, names that are not defined",
    .recognises = [](std::string_view text) { return xml_root_name(text) == "platform"; },
    .read = read_simgrid,
};

std::string write_simgrid(const cluster& c) {
  pugi::xml_document document;
  document.append_child(pugi::node_doctype)
      .set_value("platform SYSTEM \"https://simgrid.org/simgrid.dtd\"");
  auto platform = document.append_child("platform");
  platform.append_attribute("version") = "4.1";
  auto zone = platform.append_child("zone");
  zone.append_attribute("id") = c.name.c_str();
  zone.append_attribute("routing") = "Floyd";
  const auto add_property = [](element to, const char* id, const std::string& value) {
    auto property = to.append_child("prop");
    property.append_attribute("id") = id;
    property.append_attribute("value") = value.c_str();
  };
  const auto t = from_cluster(c);
  for (const auto& p : t.parts) {
    const bool is_device = p.kind == part_kind::device;
    auto e = zone.append_child(is_device ? "host" : "router");
    e.append_attribute("id") = p.name.c_str();
    if (!is_device) continue;
    e.append_attribute("speed") = fmt::format("{}f", c.device.peak_half.value()).c_str();
    if (p.node >= 0) add_property(e, "attnsim.node", std::to_string(p.node));
  }
  for (std::size_t i = 0; i < t.cables.size(); ++i) {
    const auto& l = t.cables[i];
    auto e = zone.append_child("link");
    e.append_attribute("id") = fmt::format("link{}", i).c_str();
    e.append_attribute("bandwidth") = fmt::format("{}Bps", l.rate.value()).c_str();
    e.append_attribute("latency") = fmt::format("{}s", l.latency.value()).c_str();
    if (l.duplex) e.append_attribute("sharing_policy") = "SPLITDUPLEX";
    add_property(e, "attnsim.kind", std::string(name_of(l.kind)));
  }
  const auto add_route = [&](std::size_t from, std::size_t to, std::size_t link,
                             const char* direction) {
    auto route = zone.append_child("route");
    route.append_attribute("src") = t.parts[from].name.c_str();
    route.append_attribute("dst") = t.parts[to].name.c_str();
    if (direction == nullptr) route.append_attribute("symmetrical") = "NO";
    auto use = route.append_child("link_ctn");
    use.append_attribute("id") = fmt::format("link{}", link).c_str();
    if (direction != nullptr) use.append_attribute("direction") = direction;
  };
  for (std::size_t i = 0; i < t.cables.size(); ++i) {
    const auto& l = t.cables[i];
    add_route(l.from, l.to, i, l.duplex ? "UP" : nullptr);
  }
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

}  // namespace attnsim::formats
