// The table of importers: one line each, in the order in which they look at a text. The file of that name defines the
// importer.
#pragma once

#include "formats/importer.hpp"

#define ATTNSIM_IMPORTERS(IMPORTER) \
  IMPORTER(nccl_topology)           \
  IMPORTER(nccl_graph)              \
  IMPORTER(rocm_smi)                \
  IMPORTER(nvidia_smi)              \
  IMPORTER(hwloc)                   \
  IMPORTER(slurm)                   \
  IMPORTER(slurm_yaml)              \
  IMPORTER(topograph)               \
  IMPORTER(ibnetdiscover)           \
  IMPORTER(astra_sim)               \
  IMPORTER(htsim)                   \
  IMPORTER(simgrid)                 \
  IMPORTER(taccl)                   \
  IMPORTER(graphml)                 \
  IMPORTER(attnsim)

namespace attnsim::formats::importers {

#define ATTNSIM_DECLARE(name) extern const importer name;
ATTNSIM_IMPORTERS(ATTNSIM_DECLARE)
#undef ATTNSIM_DECLARE

}  // namespace attnsim::formats::importers
