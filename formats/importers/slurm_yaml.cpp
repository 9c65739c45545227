// Slurm's topology.yaml: a list of topologies, each with a name and one of
//   tree:  {switches: [{switch: NAME, children: SWITCHES | nodes: HOSTS}, ...]}
//   block: {block_sizes: [...], blocks: [{block: NAME, nodes: HOSTS}, ...]}   each an NVLink domain
//   flat:  true
// Read is the first that is the cluster's default, else the first. No rates.
// slurm.schedmd.com/topology.yaml.html
#include <fmt/format.h>

#include <algorithm>

#include "formats/fabric_parts.hpp"
#include "formats/host_list.hpp"
#include "formats/importers/table.hpp"
#include "model/config.hpp"

namespace attnsim::formats {
namespace {

/// What `make` does with the list of hosts or switches under `key`.
template <typename Make>
void for_each_name(const config_node& entry, std::string_view key, Make make) {
  const auto names = entry.get_as(key, expand_host_list);
  try {
    for (const auto& name : names) make(name);
  } catch (const std::invalid_argument& e) {
    entry.fail(key, e.what());
  }
}

void read_tree(const config_node& tree, fabric_parts& parts) {
  tree.allow_only({"switches"});
  const auto entries = tree.at("switches").items();
  for (const auto& entry : entries) {
    entry.allow_only({"switch", "children", "nodes"});
    if (entry.has("children") == entry.has("nodes")) entry.fail("", "expected children or nodes");
    const auto name = entry.get<std::string>("switch");
    if (parts.has_switch(name)) entry.fail("switch", "expected a name that no other switch has");
    parts.find_switch(name);
  }
  for (const auto& entry : entries) {
    const auto here = parts.find_switch(entry.get<std::string>("switch"));
    if (entry.has("nodes")) {
      for_each_name(entry, "nodes", [&](const auto& host) { parts.put_below(host, here); });
    } else {
      for_each_name(entry, "children", [&](const auto& child) {
        if (!parts.has_switch(child))
          throw std::invalid_argument("expected names of switches of this topology; " + child +
                                      " is none");
        parts.join_below(parts.find_switch(child), here);
      });
    }
  }
}

int read_blocks(const config_node& block, fabric_parts& parts) {
  block.allow_only({"block_sizes", "blocks"});
  int blocks = 0;
  for (const auto& entry : block.at("blocks").items()) {
    entry.allow_only({"block", "nodes"});
    for_each_name(entry, "nodes", [&](const auto& host) { parts.put_in_domain(host, blocks); });
    ++blocks;
  }
  return blocks;
}

/// The first that is the default, else the first.
config_node find_default(const std::vector<config_node>& topologies) {
  const auto found = std::find_if(topologies.begin(), topologies.end(), [](const auto& t) {
    return t.template get<bool>("cluster_default", false);
  });
  return found != topologies.end() ? *found : topologies.front();
}

topology read_slurm_yaml(const source& from, const settings&) {
  const auto topologies = config_node::parse_list(from.text, from.name).items();
  for (const auto& t : topologies)
    t.allow_only({"topology", "cluster_default", "tree", "block", "flat"});
  if (topologies.empty()) fail_at(from, 1, "expected at least one topology");
  const auto chosen = find_default(topologies);
  const auto name = chosen.get<std::string>("topology");
  if (chosen.has("tree") == chosen.has("block")) {
    chosen.fail("", chosen.has("tree") ? "expected either tree or block"
                                       : "expected tree or block: flat tells nothing of switches");
  }
  topology result{.what = scope::fabric};
  fabric_parts parts(result);
  int blocks = 0;
  if (chosen.has("tree")) read_tree(chosen.at("tree"), parts);
  if (chosen.has("block")) blocks = read_blocks(chosen.at("block"), parts);
  result.said.read = {fmt::format("topology {}: {}, {}, {}", name,
                                  counted(result.count(part_kind::host), "host"),
                                  counted(result.count(part_kind::switch_), "switch"),
                                  counted(static_cast<std::size_t>(blocks), "block"))};
  if (blocks > 0) result.said.assumed.push_back("a block is an NVLink domain: one node here");
  parts.join_separate_parts();
  for (const auto& t : topologies) {
    const auto other = t.get<std::string>("topology");
    if (other != name)
      result.said.missing.push_back(
          fmt::format("topology {}: {} is the cluster's default", other, name));
  }
  return result;
}

/// "- topology: NAME" begins a line.
bool is_slurm_yaml(std::string_view text) {
  const auto lines = lines_of(text.substr(0, 1 << 16), '#');
  return std::any_of(lines.begin(), lines.end(), [](const auto& line) {
    const auto words = words_of(line.text);
    return words.size() > 1 && words[0] == "-" && words[1] == "topology:";
  });
}

}  // namespace

const importer importers::slurm_yaml{
    .name = "slurm-yaml",
    .what = "Slurm topology.yaml",
    .reads =
        "of the cluster's default topology: switches and the hosts below them, or blocks: each an "
        "NVLink domain",
    .assumes = "what a host holds, all rates; a switch above parts that nothing joins",
    .refuses =
        "flat topologies, undefined or repeated switches, switches above themselves, a host under "
        "two switches or in two blocks",
    .recognises = is_slurm_yaml,
    .read = read_slurm_yaml,
};

}  // namespace attnsim::formats
