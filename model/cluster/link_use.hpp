// What a flow asks of one link of its path. A flow with rate r puts weight * r on the link: a weight of 2 stands for two
// identical flows or for a path that crosses the link twice, 0.5 for a flow of which half goes this way.
#pragma once

#include <cstdint>

namespace attnsim {

using link_id = std::uint32_t;

struct link_use {
  link_id link = 0;
  double weight = 1;

  friend bool operator==(const link_use&, const link_use&) = default;
};

}  // namespace attnsim
