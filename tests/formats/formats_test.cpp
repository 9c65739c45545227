#include "formats/formats.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace {

TEST(read_topology, tells_what_it_knows) {
  const std::string names =
      "nccl-topology, nccl-graph, nvidia-smi, slurm, topograph, ibnetdiscover, astra-sim, htsim, "
      "simgrid, taccl, graphml, attnsim";
  EXPECT_ERROR(read_text("what is this?"), input_error,
               "f: of no known format; --as one of: " + names);
  EXPECT_ERROR(read_text("", {}, "visio"), input_error, "--as: 'visio': expected one of: " + names);
}

TEST(read_topology, as_overrides_what_the_text_shows) {
  EXPECT_ERROR(read_text("<graphs/>", {}, "nccl-topology"), input_error,
               "f:1: expected the element <system>");
}

TEST(known_formats, have_names_and_help) {
  for (const auto& f : known_formats()) {
    EXPECT_FALSE(f.name.empty());
    EXPECT_FALSE(f.what.empty());
    EXPECT_FALSE(f.detect("")) << f.name;
  }
}

}  // namespace
}  // namespace attnsim::formats
