// Slurm's topology.conf, and what `scontrol show topology` prints: a tree of switches
// (SwitchName=s Switches=... | Nodes=...) or blocks, each an NVLink domain (BlockName=b Nodes=...).
// scontrol also lists under Nodes= of a switch with Switches= the nodes further down. Neither has
// rates. slurm.schedmd.com/topology.conf.html
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "formats/fabric_parts.hpp"
#include "formats/formats.hpp"
#include "formats/host_list.hpp"

namespace attnsim::formats {
namespace {

constexpr std::string_view keys[] = {"SwitchName", "Switches",   "Nodes",     "LinkSpeed", "Level",
                                     "BlockName",  "BlockIndex", "BlockSize", "BlockSizes"};

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// A line by keys.
std::map<std::string_view, std::string_view> read_pairs(const source& from, const text_line& line) {
  std::map<std::string_view, std::string_view> pairs;
  for (const auto word : words_of(line.text)) {
    const auto equals = word.find('=');
    const auto* key = std::find_if(std::begin(keys), std::end(keys), [&](std::string_view k) {
      return same_letters(k, word.substr(0, equals));
    });
    if (equals == std::string_view::npos || key == std::end(keys)) {
      fail_at(from, line.number, "key", word,
              "expected SwitchName=, Switches=, Nodes= or BlockName=");
    }
    pairs[*key] = word.substr(equals + 1);
  }
  return pairs;
}

std::vector<std::string> read_names(const source& from, const text_line& line, std::string_view key,
                                    std::string_view list) {
  try {
    return expand_host_list(list);
  } catch (const std::invalid_argument& e) {
    fail_at(from, line.number, key, list, e.what());
  }
}

}  // namespace

bool is_slurm(std::string_view text) {
  const auto lines = lines_of(text.substr(0, 1 << 16), '#');
  if (lines.empty()) return false;
  const auto first = words_of(lines.front().text).front();
  const auto key = first.substr(0, first.find('='));
  return key.size() < first.size() &&
         (same_letters(key, "SwitchName") || same_letters(key, "BlockName"));
}

topology read_slurm(const source& from, const settings&) {
  topology result{.what = scope::fabric};
  fabric_parts parts(result);
  struct wanted {
    text_line line;
    std::size_t parent;
    std::vector<std::string> children;
  };
  std::vector<wanted> trees;
  int blocks = 0;
  for (const auto& line : lines_of(from.text, '#')) {
    auto pairs = read_pairs(from, line);
    const bool is_switch = pairs.contains("SwitchName"), is_block = pairs.contains("BlockName");
    if (!is_switch && !is_block && pairs.contains("BlockSizes")) continue;
    if (is_switch == is_block) {
      fail_at(from, line.number, "expected a line that begins with SwitchName= or BlockName=");
    }
    if (!pairs.contains("Nodes") && !pairs.contains("Switches")) {
      fail_at(from, line.number, "expected Nodes= or Switches=");
    }
    if (is_block) {
      for (const auto& host : read_names(from, line, "Nodes", pairs["Nodes"])) {
        result.parts[parts.find_host(host)].node = blocks;
      }
      ++blocks;
      continue;
    }
    const std::string name(pairs["SwitchName"]);
    if (parts.has_switch(name)) {
      fail_at(from, line.number, "SwitchName", name, "expected a name that no other switch has");
    }
    const auto here = parts.find_switch(name);
    if (pairs.contains("Switches")) {
      trees.push_back({line, here, read_names(from, line, "Switches", pairs["Switches"])});
      continue;
    }
    for (const auto& host : read_names(from, line, "Nodes", pairs["Nodes"])) {
      result.join(parts.find_host(host), here, {}, {}, link_kind::network);
    }
  }
  for (const auto& tree : trees) {
    for (const auto& child : tree.children) {
      if (!parts.has_switch(child)) {
        fail_at(from, tree.line.number, "Switches", child,
                "expected the name of a switch of this file");
      }
      result.join(parts.find_switch(child), tree.parent, {}, {}, link_kind::network);
    }
  }
  result.said.read = {fmt::format("{}, {}, {}", counted(result.count(part_kind::host), "host"),
                                  counted(result.count(part_kind::switch_), "switch"),
                                  counted(static_cast<std::size_t>(blocks), "block"))};
  if (blocks > 0) result.said.assumed.push_back("a block is an NVLink domain: one node here");
  parts.join_separate_parts();
  return result;
}

}  // namespace attnsim::formats
