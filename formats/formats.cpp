#include "formats/formats.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "formats/smi_matrix.hpp"
#include "formats/xml.hpp"

namespace attnsim::formats {
namespace {

template <const char* Root>
bool has_root(std::string_view text) {
  return xml_root_name(text) == Root;
}
constexpr char system_root[] = "system", graphs_root[] = "graphs", platform_root[] = "platform",
               graphml_root[] = "graphml";

/// Whether a line begins with this key.
template <const char* Key>
bool has_key(std::string_view text) {
  return text.starts_with(Key) || text.find(std::string("\n") + Key) != std::string_view::npos;
}
constexpr char blocks_key[] = "blocks:", npus_key[] = "npus_count:", tiers_key[] = "Tiers ",
               device_key[] = "device:";

/// Whether JSON names this key.
template <const char* Key>
bool has_json_key(std::string_view text) {
  return trimmed(text).starts_with('{') && text.find(Key) != std::string_view::npos;
}
constexpr char gpus_key[] = "\"gpus_per_node\"";

constexpr format formats[] = {
    {"nccl-topology", "NCCL topology XML: NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE",
     has_root<system_root>, read_nccl_topology},
    {"nccl-graph", "NCCL graph XML: NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE", has_root<graphs_root>,
     read_nccl_graph},
    {"nvidia-smi", "nvidia-smi topo -m", has_smi_matrix, read_nvidia_smi},
    {"slurm", "Slurm topology.conf, scontrol show topology", is_slurm, read_slurm},
    {"topograph", "NVIDIA topograph model YAML", has_key<blocks_key>, read_topograph},
    {"ibnetdiscover", "ibnetdiscover, ibsim", is_ibnetdiscover, read_ibnetdiscover},
    {"astra-sim", "ASTRA-sim analytical network YAML", has_key<npus_key>, read_astra_sim},
    {"htsim", "htsim fat tree", has_key<tiers_key>, read_htsim},
    {"simgrid", "SimGrid platform XML", has_root<platform_root>, read_simgrid},
    {"taccl", "TACCL topology JSON", has_json_key<gpus_key>, read_taccl},
    {"graphml", "GraphML", has_root<graphml_root>, read_graphml},
    {"attnsim", "a cluster file of attnsim", has_key<device_key>, read_own},
};

std::string names() {
  std::string list;
  for (const auto& f : formats) list += fmt::format("{}{}", list.empty() ? "" : ", ", f.name);
  return list;
}

const format& find_format(const source& from, const std::string& as) {
  for (const auto& f : formats) {
    if (as.empty() ? f.detect(from.text) : f.name == as) return f;
  }
  if (!as.empty()) throw input_error("--as", as, "expected one of: " + names());
  throw input_error(fmt::format("{}: of no known format; --as one of: {}", from.name, names()));
}

}  // namespace

std::span<const format> known_formats() {
  return formats;
}

topology read_topology(const source& from, const settings& given, const std::string& as) {
  const auto& format = find_format(from, as);
  try {
    auto result = format.read(from, given);
    const auto file = std::filesystem::path(from.name).filename().string();
    for (auto* list : {&result.said.read, &result.said.assumed, &result.said.missing}) {
      for (auto& line : *list) line = fmt::format("{}: {}", file, line);
    }
    return result;
  } catch (const std::length_error& e) {
    throw input_error(fmt::format("{}: {}", from.name, e.what()));
  }
}

}  // namespace attnsim::formats
