#include "formats/cluster_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/from_cluster.hpp"
#include "formats/hardware.hpp"
#include "formats/warnings.hpp"
#include "model/cluster/cluster.hpp"

namespace attnsim::formats {
namespace {

/// Ten digits: what was read comes back.
std::string exact(bandwidth rate) {
  return fmt::format("{:.10g} GB/s", rate.value() / 1e9);
}
std::string exact(seconds time) {
  return fmt::format("{:.10g} us", time.value() * 1e6);
}

/// A plain scalar where YAML takes it as that text, else quoted.
std::string scalar(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  };
  const bool is_name = !text.empty() && ((text[0] >= 'a' && text[0] <= 'z') ||
                                         (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '_');
  const bool is_word = text == "null" || text == "Null" || text == "NULL";
  if (is_name && !is_word && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return result + '"';
}

std::string one_line(std::string text) {
  for (auto& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

void write_notes(std::string& out, const char* title, const std::vector<std::string>& lines) {
  for (const auto& line : lines) out += fmt::format("# {}: {}\n", title, one_line(line));
}

std::string_view name_of(part_kind kind) {
  switch (kind) {
    case part_kind::device:
      return "device";
    case part_kind::nic:
      return "nic";
    case part_kind::switch_:
    case part_kind::host:
      break;
  }
  return "switch";
}

/// `vertices` and `links`; `listed` says which parts the list of vertices holds.
template <typename Listed>
void write_graph(std::string& out, const topology& t, const std::string& indent, bool with_nodes,
                 Listed listed) {
  out += fmt::format("{}vertices:\n", indent);
  for (const auto& p : t.parts) {
    if (!listed(p)) continue;
    const auto node = with_nodes && p.node >= 0 ? fmt::format(", node: {}", p.node) : "";
    out += fmt::format("{}- {{name: {}, kind: {}{}}}\n", indent, scalar(p.name), name_of(p.kind),
                       node);
  }
  if (!t.cables.empty()) out += fmt::format("{}links:\n", indent);
  for (const auto& c : t.cables) {
    out +=
        fmt::format("{}- {{from: {}, to: {}, bandwidth: {}, latency: {}, kind: {}{}}}\n", indent,
                    scalar(t.parts[c.from].name), scalar(t.parts[c.to].name), exact(c.rate),
                    exact(c.latency), attnsim::name_of(c.kind), c.duplex ? "" : ", duplex: false");
  }
}

void write_nodes(std::string& out, const machine& m, const cluster_file_settings& given) {
  const auto& inside = m.inside;
  const auto nics = inside.count(part_kind::nic);
  const auto all = [](const part&) { return true; };
  out += fmt::format("nodes: {}\ndevices_per_node: {}\nnode:\n  links: graph\n  graph:\n",
                     given.nodes > 0 ? given.nodes : m.nodes, inside.count(part_kind::device));
  write_graph(out, inside, "    ", false, all);
  if (nics == 0) return;
  out += fmt::format("nics: {{per_node: {}, bandwidth: {}, latency: {}}}\n", nics,
                     exact(inside.nic_rate), exact(known_hardware().nic_latency));
  if (!given.fabric.empty()) {
    out += fmt::format("fabric: {}\n", given.fabric);
  } else if (m.fabric) {
    out += "fabric:\n  kind: graph\n  graph:\n";
    write_graph(out, *m.fabric, "    ", false,
                [](const part& p) { return p.kind == part_kind::switch_; });
  } else {
    out += "fabric: {kind: star}\n";
  }
}

/// Reads the file back: what to warn of in the cluster that it makes.
notes check(const std::string& text, const std::string& name) {
  try {
    const auto c = read_cluster(config_node::parse_text(text, name));
    return {.read = {}, .assumed = {}, .missing = {}, .warnings = warnings_of(from_cluster(c))};
  } catch (const input_error& e) {
    throw input_error(fmt::format("what was read makes no cluster: {}", e.what()));
  }
}

}  // namespace

cluster_file write_cluster_file(const machine& m, const cluster_file_settings& given) {
  auto said = m.said;
  const bool by_nodes = m.inside.what == scope::node;
  const auto& device = m.inside.device;
  if (device.empty())
    said.missing.push_back("a shipped profile of the device: 'ideal' until --device names one");
  if (by_nodes && given.fabric.empty() && !m.fabric && m.inside.count(part_kind::nic) > 0) {
    said.missing.push_back("the network between nodes: --fabric, or a file of the fabric");
    said.assumed.push_back("a star: one switch that never limits");
  }
  std::string body = fmt::format("name: {}\ndevice: {}\n", scalar(given.name),
                                 device.empty() ? "ideal" : scalar(device));
  if (!m.inside.device_doubt.empty()) {
    body += fmt::format("assumed: {{device: {}}}\n", scalar(m.inside.device_doubt));
  }
  if (by_nodes) {
    write_nodes(body, m, given);
  } else {
    body += "graph:\n";
    write_graph(body, m.inside, "  ", true, [](const part&) { return true; });
  }
  said.add(check(body, given.name));
  std::string out;
  write_notes(out, "Read", said.read);
  write_notes(out, "Assumed", said.assumed);
  write_notes(out, "Missing", said.missing);
  write_notes(out, "Warning", said.warnings);
  for (std::size_t n = 0; n < m.names.size(); ++n) {
    out += one_line(fmt::format("# node{}: {}", n, m.names[n])) + "\n";
  }
  return {out + body, said.warnings};
}

}  // namespace attnsim::formats
