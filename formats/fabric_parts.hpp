// Switches and hosts by name, as files about fabrics mention them. Cables lead up.
#pragma once

#include <map>
#include <string>
#include <vector>

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

  /// The three throw std::invalid_argument that says what is expected: a host hangs below one switch and is in one NVLink
  /// domain; a switch hangs below others, once each and never below itself.
  void put_below(const std::string& host, std::size_t leaf);
  void put_in_domain(const std::string& host, int domain);
  void join_below(std::size_t child, std::size_t parent);

  /// Adds a switch above parts of the fabric that nothing joins, and says so.
  void join_separate_parts();

 private:
  using names = std::map<std::string, std::size_t>;

  std::size_t find(names& known, part_kind kind, const std::string& name) {
    const auto [place, is_new] = known.try_emplace(name, 0);
    if (is_new) place->second = fabric_.add(kind, name);
    return place->second;
  }
  bool hangs_below(std::size_t lower, std::size_t upper) const;

  topology& fabric_;
  names switches_, hosts_;
  std::map<std::size_t, std::vector<std::size_t>> above_;  ///< by part: the switches it hangs on
};

}  // namespace attnsim::formats
