#include "formats/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "formats/levels.hpp"

namespace attnsim::formats {
namespace {

constexpr std::size_t unreached = static_cast<std::size_t>(-1);
constexpr double tolerated = 1.01;  ///< bandwidth down over up

bool is_cpu(const part& p) {
  return p.kind == part_kind::switch_ &&
         (p.name.starts_with("cpu") || p.name.starts_with("socket"));
}

/// A host bridge is a CPU's, but several may be in one domain.
bool is_bridge(const part& p) {
  return p.kind == part_kind::switch_ && p.name.starts_with("bridge");
}

/// By part: the part before it on a shortest way from `from` over cables that `use` accepts.
std::vector<std::size_t> ways_from(const topology& t, std::size_t from,
                                   const std::vector<std::vector<std::size_t>>& cables,
                                   const std::function<bool(const cable&)>& use) {
  std::vector<std::size_t> before(t.parts.size(), unreached), queue{from};
  before[from] = from;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const auto at = queue[next];
    if (at != from && t.parts[at].kind != part_kind::switch_) continue;  // nothing passes through
    for (const auto i : cables[at]) {
      const auto& c = t.cables[i];
      const auto other = c.from == at ? c.to : c.from;
      if (before[other] != unreached || !use(c)) continue;
      before[other] = at;
      queue.push_back(other);
    }
  }
  return before;
}

std::size_t count_on_the_way(const topology& t, const std::vector<std::size_t>& before,
                             std::size_t to, bool (*counts)(const part&)) {
  std::size_t found = 0;
  for (; before[to] != to; to = before[to]) found += counts(t.parts[to]);
  return found;
}

/// Whether NVLink joins two devices, or each with a third, as NCCL's indirect peers.
bool nvlink_joins(const std::vector<std::size_t>& devices,
                  const std::map<std::size_t, std::vector<std::size_t>>& ways, std::size_t a,
                  std::size_t b) {
  const auto joined = [&](std::size_t from, std::size_t to) {
    return ways.at(from)[to] != unreached;
  };
  return joined(a, b) || std::any_of(devices.begin(), devices.end(), [&](std::size_t third) {
           return third != a && third != b && joined(a, third) && joined(third, b);
         });
}

void check_node(const topology& node, std::vector<std::string>& warnings) {
  const auto cables = cables_of_parts(node);
  const auto over_pcie = [](const cable& c) { return c.kind == link_kind::pcie; };
  const auto over_nvlink = [](const cable& c) { return c.kind == link_kind::nvlink; };
  const auto devices = node.all(part_kind::device), nics = node.all(part_kind::nic);
  std::map<std::size_t, std::vector<std::size_t>> nvlinks;
  for (const auto d : devices) nvlinks[d] = ways_from(node, d, cables, over_nvlink);
  std::vector<std::string> far;
  std::size_t pairs = 0;
  for (const auto d : devices) {
    const auto pcie = ways_from(node, d, cables, over_pcie);
    auto fewest = unreached;
    for (const auto nic : nics) {
      if (pcie[nic] == unreached) continue;
      fewest = std::min(fewest, count_on_the_way(node, pcie, nic, is_cpu));
    }
    if (fewest > 1 && fewest != unreached) far.push_back(node.parts[d].name);
    for (const auto e : devices) {
      if (e <= d || pcie[e] == unreached || nvlink_joins(devices, nvlinks, d, e)) continue;
      pairs += count_on_the_way(node, pcie, e,
                                [](const part& p) { return is_cpu(p) || is_bridge(p); }) > 0;
    }
  }
  if (!far.empty()) {
    warnings.push_back(fmt::format("{}, the first {}: the nearest NIC is on another CPU domain",
                                   counted(far.size(), "device"), far.front()));
  }
  if (pairs > 0) {
    warnings.push_back(
        fmt::format("{} of devices of a node without NVLink between them meet over a CPU: NCCL may "
                    "have no peer-to-peer access there and go through host memory",
                    counted(pairs, "pair")));
  }
}

void check_fabric(const topology& t, std::vector<std::string>& warnings) {
  const auto cables = cables_of_parts(t);
  const auto level = levels_above_nics(t);
  std::string worst;
  double worst_ratio = tolerated;
  std::size_t switches = 0;
  for (const auto s : t.all(part_kind::switch_)) {
    bandwidth down, up;
    for (const auto i : cables[s]) {
      const auto& c = t.cables[i];
      if (c.kind != link_kind::network) continue;
      const auto other = level[c.from == s ? c.to : c.from];
      if (other < level[s]) down += c.rate;
      if (other > level[s]) up += c.rate;
    }
    if (up == bandwidth{} || down / up < tolerated) continue;
    ++switches;
    if (down / up <= worst_ratio) continue;
    worst_ratio = down / up;
    worst = fmt::format("{} has {} down and {} up, {:.3g} to 1", t.parts[s].name, to_string(down),
                        to_string(up), worst_ratio);
  }
  if (switches > 0) {
    warnings.push_back(fmt::format("{} oversubscribed; {}", counted(switches, "switch"), worst));
  }
}

}  // namespace

std::vector<std::string> warnings_of(const topology& t) {
  std::vector<std::string> warnings;
  check_node(t.node(0), warnings);
  check_fabric(t, warnings);
  return warnings;
}

}  // namespace attnsim::formats
