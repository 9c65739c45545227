#include <fmt/format.h>

#include <map>

#include "formats/exports.hpp"
#include "formats/from_cluster.hpp"

namespace attnsim::formats {
namespace {

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string_view shape_of(part_kind kind) {
  switch (kind) {
    case part_kind::device:
      return "box";
    case part_kind::nic:
      return "hexagon";
    case part_kind::switch_:
    case part_kind::host:
      break;
  }
  return "ellipse";
}

}  // namespace

std::string write_dot(const cluster& c) {
  const auto t = from_cluster(c);
  std::map<int, std::string> by_node;
  for (const auto& p : t.parts) {
    by_node[p.node] += fmt::format("    {} [shape={}]\n", in_quotes(p.name), shape_of(p.kind));
  }
  std::string out = fmt::format("digraph {} {{\n  edge [dir=both]\n", in_quotes(c.name));
  for (const auto& [node, parts] : by_node) {
    out += node < 0 ? fmt::format("  {{\n{}  }}\n", parts)
                    : fmt::format("  subgraph cluster_{0} {{\n    label=\"node{0}\"\n{1}  }}\n",
                                  node, parts);
  }
  for (const auto& l : t.cables) {
    out += fmt::format("  {} -> {} [label=\"{}\"{}]\n", in_quotes(t.parts[l.from].name),
                       in_quotes(t.parts[l.to].name), to_string(l.rate),
                       l.duplex ? "" : ", dir=forward");
  }
  return out + "}\n";
}

}  // namespace attnsim::formats
