#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace graphml_test {

using testing::Contains;
using testing::ElementsAre;

topology read_graph(const std::string& inside, const settings& given = {}) {
  return read_text(
      "<graphml><key id='k' attr.name='kind'/><key id='b' attr.name='bandwidth'/>"
      "<key id='l' attr.name='latency'/><key id='n' attr.name='node'/><graph>\n" +
          inside + "</graph></graphml>",
      given);
}

TEST(graphml, reads_values_with_and_without_units) {
  const auto t = read_topology(read_source("tests/formats/data/graphml/star.graphml"), {});
  EXPECT_EQ(counts_of(t), (counts{2, 0, 1, 0, 2}));
  EXPECT_THAT(rates(t, "gpu0", "hub"), ElementsAre(50));
  EXPECT_THAT(rates(t, "hub", "gpu1"), ElementsAre(50));
  EXPECT_DOUBLE_EQ(t.cables[0].latency.value(), 1e-6);
  EXPECT_EQ(t.parts[1].node, 1);
}

TEST(graphml, edges_without_bandwidth_take_the_users) {
  const auto t =
      read_graph("<node id='a'/><node id='b'/><edge source='a' target='b' directed='true'/>",
                 {.nic_rate = bandwidth(1e9)});
  EXPECT_THAT(rates(t, "a", "b"), ElementsAre(1));
  EXPECT_FALSE(t.cables[0].duplex);
  EXPECT_THAT(t.said.assumed,
              Contains("f: 2 nodes without a kind: a device at one edge, else a switch"));
}

TEST(graphml, refuses_bad_files) {
  EXPECT_ERROR(read_text("<graphml/>"), input_error, "f:1: expected the element <graph>");
  EXPECT_ERROR(read_graph("<node id='a'/><node id='a'/>"), input_error,
               "f:2: <node> id: 'a': expected an id that no other node has");
  EXPECT_ERROR(read_graph("<node id='a'><data key='k'>hub</data></node>"), input_error,
               "f:2: <node> kind: 'hub': expected one of: device, nic, switch");
  EXPECT_ERROR(read_graph("<node id='a'><data key='x'>hub</data></node>"), input_error,
               "f:2: <data> key: 'x': expected the id of a <key>");
  EXPECT_ERROR(read_graph("<node id='a'><data key='n'>-1</data></node>"), input_error,
               "f:2: <node> node: '-1': expected a whole number from 0 to 1048576");
  const std::string ab = "<node id='a'/><node id='b'/>";
  EXPECT_ERROR(read_graph(ab + "<edge source='a' target='c'/>"), input_error,
               "f:2: <edge> target: 'c': expected the id of a <node>");
  EXPECT_ERROR(read_graph(ab + "<edge source='a' target='a'/>"), input_error,
               "f:2: <edge> target: 'a': expected another node than the source");
  EXPECT_ERROR(read_graph(ab + "<edge source='a' target='b'/>"), input_error,
               "f:2: <edge> bandwidth: missing; --nic-bandwidth gives one to all such edges");
  EXPECT_ERROR(
      read_graph(ab + "<edge source='a' target='b'><data key='b'>5 apples</data></edge>"),
      input_error,
      "f:2: <edge> bandwidth: '5 apples': expected a bandwidth with its unit, such as '400 "
      "Gb/s' or '50 GB/s'");
  EXPECT_ERROR(read_graph(ab + "<edge source='a' target='b'><data key='b'>0</data></edge>"),
               input_error, "f:2: <edge> bandwidth: '0': expected more than zero");
}

}  // namespace graphml_test
}  // namespace attnsim::formats
