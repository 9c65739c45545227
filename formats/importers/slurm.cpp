// Slurm's topology.conf, and what `scontrol show topology` prints: a tree of switches
// (SwitchName=s Switches=... | Nodes=...) or blocks, each an NVLink domain (BlockName=b Nodes=...).
// scontrol also lists under Nodes= of a switch with Switches= the nodes further down. Neither has
// rates. slurm.schedmd.com/topology.conf.html
#include <fmt/format.h>

#include <algorithm>

#include "formats/fabric_parts.hpp"
#include "formats/host_list.hpp"
#include "formats/importers/table.hpp"
#include "model/spelling.hpp"

namespace attnsim::formats {
namespace {

constexpr std::string_view keys[] = {"SwitchName", "Switches",   "Nodes",     "LinkSpeed", "Level",
                                     "BlockName",  "BlockIndex", "BlockSize", "BlockSizes"};

bool same_letters(std::string_view a, std::string_view b) {
  return lower_case(a) == lower_case(b);
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

/// What `make` does with each name of the list under a key; the std::invalid_argument it throws says what is expected.
template <typename Make>
void for_each_name(const source& from, const text_line& line, std::string_view key,
                   std::string_view list, Make make) {
  try {
    for (const auto& name : expand_host_list(list)) make(name);
  } catch (const std::invalid_argument& e) {
    fail_at(from, line.number, key, list, e.what());
  }
}

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
  struct upper_switch {
    text_line line;
    std::size_t part;
    std::string_view children;
  };
  std::vector<upper_switch> uppers;
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
      for_each_name(from, line, "Nodes", pairs["Nodes"],
                    [&](const auto& host) { parts.put_in_domain(host, blocks); });
      ++blocks;
      continue;
    }
    const std::string name(pairs["SwitchName"]);
    if (parts.has_switch(name)) {
      fail_at(from, line.number, "SwitchName", name, "expected a name that no other switch has");
    }
    const auto here = parts.find_switch(name);
    if (pairs.contains("Switches")) {
      uppers.push_back({line, here, pairs["Switches"]});
      continue;
    }
    for_each_name(from, line, "Nodes", pairs["Nodes"],
                  [&](const auto& host) { parts.put_below(host, here); });
  }
  for (const auto& upper : uppers) {
    for_each_name(from, upper.line, "Switches", upper.children, [&](const auto& child) {
      if (!parts.has_switch(child)) {
        throw std::invalid_argument(
            fmt::format("expected names of switches of this file; {} is none", child));
      }
      parts.join_below(parts.find_switch(child), upper.part);
    });
  }
  result.said.read = {fmt::format("{}, {}, {}", counted(result.count(part_kind::host), "host"),
                                  counted(result.count(part_kind::switch_), "switch"),
                                  counted(static_cast<std::size_t>(blocks), "block"))};
  if (blocks > 0) result.said.assumed.push_back("a block is an NVLink domain: one node here");
  parts.join_separate_parts();
  return result;
}

}  // namespace

const importer importers::slurm{
    .name = "slurm",
    .what = "Slurm topology.conf, scontrol show topology",
    .reads = "switches and the hosts below them, or blocks: each an NVLink domain",
    .assumes = "what a host holds, all rates; a switch above parts that nothing joins",
    .refuses =
        "undefined or repeated switches, switches below themselves, a host below two switches or "
        "in two blocks",
    .recognises = is_slurm,
    .read = read_slurm,
};

}  // namespace attnsim::formats
