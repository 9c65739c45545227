// The project's own cluster files (model/cluster/cluster.hpp), so that one can be the node of another file's
// fabric.
#include <fmt/format.h>

#include "formats/formats.hpp"
#include "formats/from_cluster.hpp"

namespace attnsim::formats {

topology read_own(const source& from, const settings& given) {
  const auto c =
      read_cluster(config_node::parse_text(from.text, from.name), {.device = given.device});
  auto t = from_cluster(c);
  t.said.read = {fmt::format("{}: {}, {}", c.name,
                             counted(static_cast<std::size_t>(c.devices()), "device"),
                             counted(t.cables.size(), "link"))};
  return t;
}

}  // namespace attnsim::formats
