#include "model/cluster/host.hpp"

#include <utility>

#include "model/config.hpp"

namespace attnsim {

host_profile read_host(const config_node& root) {
  root.allow_only({"name", "source", "basis", "attention", "attention_backward", "merge", "add",
                   "copy", "cast", "exchange", "exchanged_tensor", "all_gather", "reduce_scatter",
                   "all_to_all", "slowdown", "uncertainty"});
  host_profile host{.name = root.get<std::string>("name"),
                    .source = root.get_text("source"),
                    .basis = root.has("basis") ? root.get_as("basis", parse_basis) : basis::assumed,
                    .attention = root.get<seconds>("attention"),
                    .attention_backward = root.get<seconds>("attention_backward"),
                    .merge = root.get<seconds>("merge"),
                    .add = root.get<seconds>("add"),
                    .copy = root.get<seconds>("copy"),
                    .cast = root.get<seconds>("cast", root.get<seconds>("copy")),
                    .exchange = root.get<seconds>("exchange"),
                    .exchanged_tensor = root.get<seconds>("exchanged_tensor"),
                    .all_gather = root.get<seconds>("all_gather"),
                    .reduce_scatter = root.get<seconds>("reduce_scatter"),
                    .all_to_all = root.get<seconds>("all_to_all"),
                    .slowdown = root.get<double>("slowdown", 1),
                    .uncertainty = root.get<double>("uncertainty", 0)};
  if (host.name.empty()) root.fail("name", "expected a name");
  if (host.slowdown <= 0) root.fail("slowdown", "expected above 0");
  if (host.uncertainty < 0) root.fail("uncertainty", "expected at least 0");
  return host;
}

}  // namespace attnsim
