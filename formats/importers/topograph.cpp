// The cluster models of NVIDIA topograph (YAML): `switches` by name with the switches under each,
// `blocks` of nodes under a leaf switch, whose annotation accelerator.../domain names their NVLink
// domain. No rates. github.com/NVIDIA/topograph tests/models
#include <fmt/format.h>

#include <map>

#include "formats/fabric_parts.hpp"
#include "formats/host_list.hpp"
#include "formats/importers/table.hpp"
#include "model/config.hpp"

namespace attnsim::formats {
namespace {

/// The NVLink domain of a block by its annotations, -1 for none.
int read_domain(const config_node& block, std::map<std::string, int>& domains) {
  if (!block.has("annotations")) return -1;
  for (const auto& [key, value] : block.at("annotations").entries()) {
    if (!key.starts_with("accelerator.") || !key.ends_with("/domain")) continue;
    const auto next = static_cast<int>(domains.size());
    return domains.try_emplace(value.as<std::string>(), next).first->second;
  }
  return -1;
}

topology read_topograph(const source& from, const settings&) {
  const auto root = config_node::parse_text(from.text, from.name);
  root.allow_only({"switches", "blocks"});
  topology result{.what = scope::fabric};
  fabric_parts parts(result);
  std::map<std::string, int> domains;
  for (const auto& block : root.at("blocks").items()) {
    block.allow_only({"switch", "nodes", "annotations", "labels"});
    const auto leaf = parts.find_switch(block.get<std::string>("switch"));
    const int domain = read_domain(block, domains);
    for (const auto& item : block.at("nodes").items()) {
      try {
        for (const auto& host : expand_host_list(item.as<std::string>())) {
          parts.put_below(host, leaf);
          if (domain >= 0) parts.put_in_domain(host, domain);
        }
      } catch (const std::invalid_argument& e) {
        item.fail("", e.what());
      }
    }
  }
  if (root.has("switches")) {
    for (const auto& [name, entry] : root.at("switches").entries()) {
      entry.allow_only({"labels", "annotations", "switches"});
      const auto parent = parts.find_switch(name);
      if (!entry.has("switches")) continue;
      for (const auto& child : entry.at("switches").items()) {
        const auto below = parts.find_switch(child.as<std::string>());
        try {
          parts.join_below(below, parent);
        } catch (const std::invalid_argument& e) {
          child.fail("", e.what());
        }
      }
    }
  }
  result.said.read = {fmt::format("{}, {}, {}", counted(result.count(part_kind::host), "host"),
                                  counted(result.count(part_kind::switch_), "switch"),
                                  counted(domains.size(), "NVLink domain"))};
  if (!domains.empty()) result.said.assumed.push_back("an NVLink domain is one node here");
  parts.join_separate_parts();
  return result;
}

}  // namespace

const importer importers::topograph{
    .name = "topograph",
    .what = "NVIDIA topograph model YAML",
    .reads = "switches, blocks of hosts below them, NVLink domains",
    .assumes = "what a host holds, all rates; a switch above parts that nothing joins",
    .refuses = "unknown keys, a host below two switches, a switch below itself",
    .recognises = [](std::string_view text) { return has_key(text, "blocks:"); },
    .read = read_topograph,
};

}  // namespace attnsim::formats
