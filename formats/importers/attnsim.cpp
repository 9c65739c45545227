// The project's own cluster files (model/cluster/cluster.hpp), so that one can be the node of another file's
// fabric.
#include <fmt/format.h>

#include "formats/from_cluster.hpp"
#include "formats/importers/table.hpp"

namespace attnsim::formats {

namespace {

topology read_cluster_file(const source& from, const settings& given) {
  const auto c =
      read_cluster(config_node::parse_text(from.text, from.name), {.device = given.device});
  auto t = from_cluster(c);
  t.said.read = {fmt::format("{}: {}, {}", c.name,
                             counted(static_cast<std::size_t>(c.devices()), "device"),
                             counted(t.cables.size(), "link"))};
  return t;
}

}  // namespace

const importer importers::attnsim{
    .name = "attnsim",
    .what = "a cluster file of attnsim",
    .reads = "everything",
    .assumes = "nothing",
    .refuses = "unknown keys",
    .recognises = [](std::string_view text) { return has_key(text, "device:"); },
    .read = read_cluster_file,
};

}  // namespace attnsim::formats
