#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace nccl_graph_test {

using testing::Each;
using testing::ElementsAre;

TEST(nccl_graph, adds_up_the_channels_of_the_ring) {
  // The first graph is no ring. Channels 0 1 2 and 0 1 2 and 2 1 0: from 0 to 1, 1 to 2 and 2 to 0
  // two, back one.
  const auto t = read_text(R"(<graphs version="1">
<graph id="1" pattern="1" speedintra="99"><channel><gpu dev="7"/></channel></graph>
<graph id="0" pattern="4" speedintra="20" typeintra="NVL" speedinter="12.5">
  <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><net dev="1"/></channel>
  <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><net dev="1"/></channel>
  <channel><gpu dev="2"/><gpu dev="1"/><gpu dev="0"/></channel>
</graph></graphs>)");
  EXPECT_EQ(counts_of(t), (counts{3, 2, 0, 0, 6 + 2}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(40, 20));
  EXPECT_THAT(rates(t, "gpu2", "gpu0"), testing::UnorderedElementsAre(40, 20));
  EXPECT_THAT(rates(t, "gpu0", "nic0"), ElementsAre(25));
  EXPECT_THAT(rates(t, "gpu2", "nic1"), ElementsAre(25));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 12.5e9);
  EXPECT_EQ(t.cables.front().kind, link_kind::nvlink);
}

TEST(nccl_graph, refuses_bad_files) {
  EXPECT_ERROR(read_text("<graphs/>"), input_error, "f:1: expected at least one <graph>");
  EXPECT_ERROR(read_text("<graphs>\n<graph pattern=\"4\"/></graphs>"), input_error,
               "f:2: <graph> speedintra: missing");
  EXPECT_ERROR(
      read_text("<graphs>\n<graph pattern=\"4\" speedintra=\"-1\" typeintra=\"NVL\"/></graphs>"),
      input_error, "f:2: <graph> speedintra: '-1': expected a number from 0.001 to 100000");
  EXPECT_ERROR(
      read_text("<graphs>\n<graph pattern=\"4\" speedintra=\"1\" typeintra=\"NVL\"/></graphs>"),
      input_error, "f:2: <graph>: expected at least one <channel>");
  EXPECT_ERROR(read_text("<graphs><graph pattern=\"4\" speedintra=\"1\" typeintra=\"NVL\">\n"
                         "<channel/></graph></graphs>"),
               input_error, "f:2: <channel>: expected at least one <gpu>");
}

TEST(nccl_graph_of_azure, nc96_a100_v4) {
  READ_SHARED_OR_SKIP(t, "nccl_graph_xml/azure_ncv4-graph.xml", {});
  // Rings 0 1 2 3 and 0 3 2 1 at 12 GB/s: each way between neighbours once.
  EXPECT_EQ(counts_of(t), (counts{4, 0, 0, 0, 8}));
  EXPECT_THAT(rates(t, link_kind::pcie), Each(12));
  EXPECT_THAT(rates(t, "gpu0", "gpu3"), ElementsAre(12, 12));
}

TEST(nccl_graph_of_azure, nc48_a100_v4) {
  READ_SHARED_OR_SKIP(t, "nccl_graph_xml/azure_nc48v4-graph.xml", {});
  EXPECT_EQ(counts_of(t), (counts{2, 0, 0, 0, 2}));
  EXPECT_THAT(rates(t, link_kind::pcie), Each(24));  // both rings go 0 1 0
}

}  // namespace nccl_graph_test
}  // namespace attnsim::formats
