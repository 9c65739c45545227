// The table of importers: one line each, in the order in which they look at a text. The file of that name defines the
// importer.
#pragma once

#include "formats/importer.hpp"

// Those of XML are in builds that have pugixml.
#ifdef ATTNSIM_HAS_PUGIXML
#define ATTNSIM_XML(IMPORTER, name) IMPORTER(name)
#else
#define ATTNSIM_XML(IMPORTER, name)
#endif

#define ATTNSIM_IMPORTERS(IMPORTER)    \
  ATTNSIM_XML(IMPORTER, nccl_topology) \
  ATTNSIM_XML(IMPORTER, nccl_graph)    \
  IMPORTER(rocm_smi)                   \
  IMPORTER(nvidia_smi)                 \
  ATTNSIM_XML(IMPORTER, hwloc)         \
  IMPORTER(slurm)                      \
  IMPORTER(slurm_yaml)                 \
  IMPORTER(topograph)                  \
  IMPORTER(ibnetdiscover)              \
  IMPORTER(astra_sim)                  \
  IMPORTER(htsim)                      \
  ATTNSIM_XML(IMPORTER, simgrid)       \
  IMPORTER(taccl)                      \
  ATTNSIM_XML(IMPORTER, graphml)       \
  IMPORTER(attnsim)

namespace attnsim::formats::importers {

#define ATTNSIM_DECLARE(name) extern const importer name;
ATTNSIM_IMPORTERS(ATTNSIM_DECLARE)
#undef ATTNSIM_DECLARE

}  // namespace attnsim::formats::importers
