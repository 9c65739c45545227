#include "formats/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace attnsim::formats {
namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const auto& line : from) {
    if (std::find(to.begin(), to.end(), line) == to.end()) to.push_back(line);
  }
}

}  // namespace

void notes::add(const notes& other) {
  append(read, other.read);
  append(assumed, other.assumed);
  append(missing, other.missing);
  append(warnings, other.warnings);
}

std::size_t topology::add(part_kind kind, std::string name, int node) {
  if (parts.size() == most_parts) {
    throw std::length_error(fmt::format("describes more than {} parts", most_parts));
  }
  parts.push_back({std::move(name), kind, node});
  return parts.size() - 1;
}

void topology::join(std::size_t from, std::size_t to, bandwidth rate, seconds latency,
                    link_kind kind, bool duplex) {
  if (cables.size() == most_cables) {
    throw std::length_error(fmt::format("describes more than {} links", most_cables));
  }
  cables.push_back({from, to, rate, latency, kind, duplex});
}

std::vector<std::size_t> topology::all(part_kind kind) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == kind) found.push_back(i);
  }
  return found;
}

std::size_t topology::count(part_kind kind) const {
  return all(kind).size();
}

int topology::nodes() const {
  int nodes = 0;
  for (const auto& p : parts) {
    if (p.kind == part_kind::device) nodes = std::max(nodes, p.node + 1);
  }
  return nodes;
}

topology topology::node(int number) const {
  topology inside{.what = scope::node,
                  .device = device,
                  .device_doubt = device_doubt,
                  .nic_rate = nic_rate,
                  .said = said};
  std::vector<std::size_t> place(parts.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].node != number) continue;
    const auto& name = parts[i].name;
    const auto prefix = fmt::format("node{}.", number);
    place[i] =
        inside.add(parts[i].kind, name.starts_with(prefix) ? name.substr(prefix.size()) : name, 0);
  }
  for (auto c : cables) {
    if (place[c.from] == parts.size() || place[c.to] == parts.size()) continue;
    c.from = place[c.from];
    c.to = place[c.to];
    inside.cables.push_back(c);
  }
  return inside;
}

std::vector<std::vector<std::size_t>> cables_of_parts(const topology& t) {
  std::vector<std::vector<std::size_t>> cables(t.parts.size());
  for (std::size_t i = 0; i < t.cables.size(); ++i) {
    cables[t.cables[i].from].push_back(i);
    if (t.cables[i].to != t.cables[i].from) cables[t.cables[i].to].push_back(i);
  }
  return cables;
}

std::string counted(std::size_t n, std::string_view what) {
  const bool es = what.ends_with("ch") || what.ends_with("s");
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : es ? "es" : "s");
}

}  // namespace attnsim::formats
