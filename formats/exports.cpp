#include "formats/exports.hpp"

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/named.hpp"

namespace attnsim::formats {
namespace {

constexpr export_format all_exports[] = {
#ifdef ATTNSIM_HAS_PUGIXML
    {"graphml", "GraphML", write_graphml},
    {"simgrid", "SimGrid platform XML", write_simgrid},
#endif
    {"dot", "Graphviz", write_dot},
    {"astra-sim", "ASTRA-sim analytical network YAML", write_astra_sim},
};

}  // namespace

std::span<const export_format> export_formats() {
  return all_exports;
}

const export_format& find_export(const std::string& name) {
  try {
    return attnsim::find_named(all_exports, name);
  } catch (const std::invalid_argument& e) {
    throw input_error("--to", name, e.what());
  }
}

}  // namespace attnsim::formats
