#include "formats/drawing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "formats/escaped.hpp"
#include "formats/from_cluster.hpp"
#include "formats/levels.hpp"

namespace attnsim::formats {
namespace {

constexpr std::size_t most_columns = 32, most_drawn = 4096;

/// One direction of a cable. Ways are compared by latency in ps, then hops.
struct leg {
  std::int64_t length = 0;
  const cable* over = nullptr;
};
using legs =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, leg>;

legs legs_of(const topology& t) {
  legs graph(t.parts.size());
  for (const auto& c : t.cables) {
    const leg l{(std::llround(c.latency.value() * 1e12) << 12) + 1, &c};
    add_edge(c.from, c.to, l, graph);
    if (c.duplex) add_edge(c.to, c.from, l, graph);
  }
  return graph;
}

struct way {
  std::size_t hops = 0;  ///< 0: none, or to itself
  bandwidth narrowest{1e30};
  link_kind kind = link_kind::nvlink;
};

/// Shortest ways from one part to all.
std::vector<way> ways_from(const legs& graph, std::size_t from) {
  std::vector<std::optional<legs::edge_descriptor>> last(num_vertices(graph));
  const auto record = boost::record_edge_predecessors(last.data(), boost::on_edge_relaxed());
  boost::dijkstra_shortest_paths(
      graph, from,
      boost::weight_map(get(&leg::length, graph)).visitor(boost::make_dijkstra_visitor(record)));
  std::vector<way> ways(last.size());
  for (std::size_t to = 0; to < ways.size(); ++to) {
    for (auto at = to; at != from && last[at]; at = boost::source(*last[at], graph)) {
      const auto& c = *graph[*last[at]].over;
      auto& w = ways[to];
      ++w.hops;
      w.narrowest = std::min(w.narrowest, c.rate);
      w.kind = std::max(w.kind, c.kind);
    }
  }
  return ways;
}

/// What a message between two devices takes.
way route_between(const network& net, int from, int to) {
  std::vector<link_id> path;
  net.route(from, to, path);
  way w;
  for (const auto i : path) {
    const auto& l = net.links()[i];
    ++w.hops;
    w.narrowest = std::min(w.narrowest, l.capacity);
    w.kind = std::max(w.kind, l.kind);
  }
  return w;
}

/// By part, which are the network's vertices in their order.
std::map<std::size_t, int> numbers_of_devices(const network& net) {
  std::map<std::size_t, int> numbers;
  for (int d = 0; d < net.devices(); ++d) numbers.emplace(net.device(d), d);
  return numbers;
}

std::string_view short_name(link_kind kind) {
  switch (kind) {
    case link_kind::nvlink:
      return "NV";
    case link_kind::pcie:
    case link_kind::host_memory:
      return "PCI";
    case link_kind::network:
      break;
  }
  return "NET";
}

std::string cell(const way& w, bool itself) {
  if (itself) return "X";
  if (w.hops == 0) return "-";
  return fmt::format("{}{:.3g}", short_name(w.kind), w.narrowest.value() / 1e9);
}

// --- SVG. ---

constexpr double row_height = 90, column_width = 26, margin = 40, size = 16;

std::string_view colour(part_kind kind) {
  switch (kind) {
    case part_kind::device:
      return "#4c9f38";
    case part_kind::nic:
      return "#d98c1f";
    case part_kind::switch_:
    case part_kind::host:
      break;
  }
  return "#8fa3b5";
}

std::string_view colour(link_kind kind) {
  switch (kind) {
    case link_kind::nvlink:
      return "#4c9f38";
    case link_kind::pcie:
    case link_kind::host_memory:
      return "#b0b0b0";
    case link_kind::network:
      break;
  }
  return "#3a6ea5";
}

/// From hardly used, grey, to saturated, red.
constexpr struct {
  double from;
  const char* colour;
} heat[] = {{0.75, "#c1121f"}, {0.5, "#e8590c"},  {0.25, "#f4a259"},
            {0.1, "#c9a227"},  {0.01, "#6a9fb5"}, {0, "#c8ccd0"}};

std::string_view colour_of_use(double use) {
  return std::find_if(std::begin(heat), std::end(heat) - 1,
                      [&](const auto& h) { return use >= h.from; })
      ->colour;
}

/// Of the busier direction of each cable; the network's links are in the order of the cables.
std::vector<double> use_of_cables(const topology& t, std::span<const double> use) {
  std::vector<double> result;
  std::size_t link = 0;
  for (const auto& c : t.cables) {
    result.push_back(c.duplex ? std::max(use[link], use[link + 1]) : use[link]);
    link += c.duplex ? 2 : 1;
  }
  return result;
}

/// "nic" of "node0.nic3".
std::string_view stem(std::string_view name) {
  name = name.substr(name.find('.') + 1);
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

struct point {
  double x = 0, y = 0;
};

/// Devices in the lowest row; every row is spread over the width, in the order of nodes.
std::vector<point> lay_out(const topology& t, double& width, double& height) {
  const auto level = levels_above(t, t.all(part_kind::device));
  std::map<int, std::vector<std::size_t>> rows;
  for (std::size_t i = 0; i < t.parts.size(); ++i) rows[level[i]].push_back(i);
  std::size_t longest = 1;
  for (const auto& [number, row] : rows) longest = std::max(longest, row.size());
  width = 2 * margin + column_width * static_cast<double>(longest);
  const double step_down = std::max(row_height, width / 16);
  height = 2 * margin + step_down * static_cast<double>(rows.size() - 1) + size;
  std::vector<point> at(t.parts.size());
  double y = height - margin;
  for (auto& [number, row] : rows) {
    std::stable_sort(row.begin(), row.end(),
                     [&](auto a, auto b) { return t.parts[a].node < t.parts[b].node; });
    const double step = (width - 2 * margin) / static_cast<double>(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      at[row[i]] = {margin + step * (static_cast<double>(i) + 0.5), y};
    }
    y -= step_down;
  }
  return at;
}

/// Legible when the drawing is shrunk to the width of a page.
double letters_of(double width) {
  return std::max(11.0, width / 95);
}

std::string text_at(double x, double y, double letters, std::string_view text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" style=\"font: {:.0f}px sans-serif\" paint-order=\"stroke\" "
      "stroke=\"white\" stroke-width=\"3\">{}</text>\n",
      x, y, letters, escaped(text));
}

/// Above the left end of every row: "gpu", "nic, nvswitch".
std::string names_of_rows(const topology& t, const std::vector<point>& at, double letters) {
  std::map<double, std::set<std::string_view>> rows;
  for (std::size_t i = 0; i < at.size(); ++i) rows[at[i].y].insert(stem(t.parts[i].name));
  std::string out;
  for (const auto& [y, names] : rows)
    out += text_at(4, y - size, letters, fmt::format("{}", fmt::join(names, ", ")));
  return out;
}

std::string legend(double bottom, double letters) {
  std::string out;
  double x = margin;
  for (const auto& h : heat) {
    out +=
        fmt::format("<path d=\"M{:.0f} {:.0f}h{:.0f}\" stroke=\"{}\" stroke-width=\"{:.0f}\"/>\n",
                    x, bottom - 0.8 * letters, 2 * letters, h.colour, letters / 2);
    out += text_at(x + 2.5 * letters, bottom - letters / 2, letters,
                   h.from > 0 ? fmt::format("over {:.0f} %", 100 * h.from) : "less");
    x += 9 * letters;
  }
  return out;
}

}  // namespace

std::string draw_matrix(const cluster& c) {
  const auto t = from_cluster(c);
  std::vector<std::size_t> shown;
  for (const auto kind : {part_kind::device, part_kind::nic}) {
    for (const auto i : t.all(kind)) {
      if (shown.size() < most_columns && t.parts[i].node == c.network.node_of(0))
        shown.push_back(i);
    }
  }
  const auto graph = legs_of(t);
  const auto numbers = numbers_of_devices(c.network);
  const auto prefix = fmt::format("node{}.", c.network.node_of(0));
  const auto name = [&](std::size_t i) {
    const std::string_view full = t.parts[i].name;
    return full.starts_with(prefix) ? full.substr(prefix.size()) : full;
  };
  std::string out = fmt::format("{:8}", "");
  for (const auto column : shown) out += fmt::format("{:>9}", name(column));
  for (const auto row : shown) {
    out += fmt::format("\n{:8}", name(row));
    const auto ways = ways_from(graph, row);
    for (const auto column : shown) {
      const bool devices = numbers.contains(row) && numbers.contains(column);
      const auto w =
          devices ? route_between(c.network, numbers.at(row), numbers.at(column)) : ways[column];
      out += fmt::format("{:>9}", cell(w, column == row));
    }
  }
  return out + "\n";
}

bandwidth bisection(const cluster& c) {
  using namespace boost;
  using traits = adjacency_list_traits<vecS, vecS, directedS>;
  using graph_type =
      adjacency_list<vecS, vecS, directedS, no_property,
                     property<edge_capacity_t, double,
                              property<edge_residual_capacity_t, double,
                                       property<edge_reverse_t, traits::edge_descriptor>>>>;
  const auto& net = c.network;
  if (net.devices() < 2) return {};
  const auto n = net.vertices().size();
  graph_type g(n + 2);
  const auto capacity = get(edge_capacity, g);
  const auto reverse = get(edge_reverse, g);
  const auto add = [&](std::size_t from, std::size_t to, double rate) {
    const auto forth = add_edge(from, to, g).first, back = add_edge(to, from, g).first;
    capacity[forth] = rate;
    capacity[back] = 0;
    reverse[forth] = back;
    reverse[back] = forth;
  };
  double total = 0;
  for (const auto& l : net.links()) {
    add(l.from, l.to, l.capacity.value());
    total += l.capacity.value();
  }
  for (int d = 0; d < net.devices(); ++d) {
    if (d < net.devices() / 2) {
      add(n, net.device(d), total);
    } else {
      add(net.device(d), n + 1, total);
    }
  }
  return bandwidth(push_relabel_max_flow(g, n, n + 1));
}

std::string draw_svg(const cluster& c, std::span<const double> use) {
  const auto t = from_cluster(c);
  if (t.parts.size() > most_drawn) {
    throw input_error(fmt::format("{}: {} are too many to draw, at most {}; fewer with --nodes",
                                  c.name, counted(t.parts.size(), "part"), most_drawn));
  }
  double width = 0, height = 0;
  const auto at = lay_out(t, width, height);
  const double letters = letters_of(width);
  if (!use.empty()) height += letters;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n"
      "<rect class=\"background\" width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height, escaped(c.name));
  const auto used = use.empty() ? std::vector<double>(t.cables.size()) : use_of_cables(t, use);
  std::vector<std::size_t> order(t.cables.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return used[a] < used[b]; });
  for (const auto i : order) {
    const auto& l = t.cables[i];
    const auto &a = at[l.from], &b = at[l.to];
    const double thickness = std::clamp(std::log2(l.rate.value() / 1e9) / 2, 0.5, 5.0);
    out += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{:.1f}\"><title>{} - {}: {}{}</title></line>\n",
        a.x, a.y, b.x, b.y, use.empty() ? colour(l.kind) : colour_of_use(used[i]), thickness,
        escaped(t.parts[l.from].name), escaped(t.parts[l.to].name), to_string(l.rate),
        use.empty() ? "" : fmt::format(", {:.1f} % used", 100 * used[i]));
  }
  for (std::size_t i = 0; i < t.parts.size(); ++i) {
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"3\" "
        "fill=\"{}\"><title>{}</title></rect>\n",
        at[i].x - size / 2, at[i].y - size / 2, size, size, colour(t.parts[i].kind),
        escaped(t.parts[i].name));
  }
  out += names_of_rows(t, at, letters);
  if (!use.empty()) out += legend(height, letters);
  return out + "</svg>\n";
}

}  // namespace attnsim::formats
