// Switches and hosts by name, as files about fabrics mention them.
#pragma once

#include <map>
#include <string>

#include "formats/topology.hpp"

namespace attnsim::formats {

class fabric_parts {
 public:
  explicit fabric_parts(topology& fabric) : fabric_(fabric) {}

  /// The part of this name, added when it is new.
  std::size_t find_switch(const std::string& name) {
    return find(switches_, part_kind::switch_, name);
  }
  std::size_t find_host(const std::string& name) { return find(hosts_, part_kind::host, name); }
  bool has_switch(const std::string& name) const { return switches_.contains(name); }

  /// Adds a switch above parts of the fabric that nothing joins, and says so. Cables lead up.
  void join_separate_parts();

 private:
  using names = std::map<std::string, std::size_t>;

  std::size_t find(names& known, part_kind kind, const std::string& name) {
    const auto [place, is_new] = known.try_emplace(name, 0);
    if (is_new) place->second = fabric_.add(kind, name);
    return place->second;
  }

  topology& fabric_;
  names switches_, hosts_;
};

}  // namespace attnsim::formats
