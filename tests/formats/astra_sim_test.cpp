#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace astra_sim_test {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

TEST(astra_sim, builds_each_dimension) {
  const auto t =
      read_topology(read_source("tests/formats/data/astra-sim/three-dimensions.yml"), {});
  // 4 x 3 x 2 NPUs. Six groups of four all to all (6 links), eight rings of three, twelve switches
  // of two.
  EXPECT_EQ(counts_of(t), (counts{24, 0, 12, 0, 6 * 6 + 8 * 3 + 12 * 2}));
  EXPECT_EQ(t.nodes(), 6);  // 150 GB/s is NVLink
  EXPECT_THAT(rates(t, "npu0", "npu3"), ElementsAre(150));
  EXPECT_THAT(rates(t, "npu0", "npu8"), ElementsAre(50));
  EXPECT_DOUBLE_EQ(t.cables.back().latency.value(), 2e-6);
}

TEST(astra_sim, refuses_bad_files) {
  const auto file = [](const std::string& topology, const std::string& npus,
                       const std::string& bandwidth) {
    return read_text("topology: " + topology + "\nnpus_count: " + npus +
                     "\nbandwidth: " + bandwidth + "\nlatency: [1]\n");
  };
  EXPECT_ERROR(file("[Torus]", "[8]", "[1]"), input_error,
               "f:1: topology[0]: 'Torus': expected one of: Ring, Switch, FullyConnected");
  EXPECT_ERROR(file("[]", "[8]", "[1]"), input_error,
               "f:1: topology: '[...]': expected 1 to 8 dimensions");
  EXPECT_ERROR(file("[Ring]", "[8, 2]", "[1]"), input_error,
               "f:2: npus_count: '[...]': expected 1 values, one a dimension");
  EXPECT_ERROR(file("[Ring]", "[tbd]", "[1]"), input_error,
               "f:2: npus_count[0]: 'tbd': expected a whole number");
  EXPECT_ERROR(file("[Ring]", "[0]", "[1]"), input_error,
               "f:2: npus_count[0]: '0': expected at least 1 and at most 131072 NPUs in all");
  EXPECT_ERROR(
      file("[Ring]", "[99999999]", "[1]"), input_error,
      "f:2: npus_count[0]: '99999999': expected at least 1 and at most 131072 NPUs in all");
  EXPECT_ERROR(file("[Ring]", "[8]", "[tbd]"), input_error,
               "f:3: bandwidth[0]: 'tbd': expected a number");
  EXPECT_ERROR(file("[Ring]", "[8]", "[-1]"), input_error,
               "f:3: bandwidth[0]: '-1': expected GB/s above 0 and at most 1000000");
  EXPECT_ERROR(file("[FullyConnected]", "[100000]", "[1]"), input_error,
               "f: describes more than 262144 links");
}

TEST(astra_sim_examples, hgx_h100) {
  READ_SHARED_OR_SKIP(one, "astra_sim/hgx_h100_8gpu.yml", {});
  EXPECT_EQ(counts_of(one), (counts{8, 0, 1, 0, 8}));
  EXPECT_THAT(rates(one, link_kind::nvlink), AllOf(SizeIs(8), Each(400)));
  READ_SHARED_OR_SKIP(validated, "astra_sim/HGX-H100-validated.yml", {});
  EXPECT_EQ(counts_of(validated), counts_of(one));
  READ_SHARED_OR_SKIP(two, "astra_sim/hgx_h100_16gpu.yml", {});
  EXPECT_EQ(counts_of(two), (counts{16, 0, 2, 0, 16 + 8}));  // a ring of two is one link
  EXPECT_THAT(rates(two, link_kind::network), AllOf(SizeIs(8), Each(50)));
  READ_SHARED_OR_SKIP(four, "astra_sim/hgx_h100_32gpu.yml", {});
  EXPECT_EQ(counts_of(four), (counts{32, 0, 4, 0, 32 + 8 * 4}));
}

TEST(astra_sim_examples, ring) {
  READ_SHARED_OR_SKIP(t, "astra_sim/Ring_16npus.yml", {});
  EXPECT_EQ(counts_of(t), (counts{16, 0, 0, 0, 16}));
  EXPECT_THAT(rates(t, link_kind::network), Each(50));
  EXPECT_EQ(t.nodes(), 16);
}

}  // namespace astra_sim_test
}  // namespace attnsim::formats
