#include "formats/drawing.hpp"

#include <gmock/gmock.h>

#include <pugixml.hpp>

#include "tests/expect_error.hpp"

namespace attnsim::formats {
namespace drawing_test {

cluster two_nodes() {
  return read_cluster(
      config_node::parse_text("name: c\ndevice: ideal\nnodes: 2\ndevices_per_node: 2\n"
                              "node: {links: nvlink-pairs, bandwidth: 100 GB/s, latency: 1 us, "
                              "pcie: {bandwidth: 30 GB/s, latency: 1 us, devices_per_switch: 1}}\n"
                              "nics: {per_node: 1, bandwidth: 12.5 GB/s}\nfabric: {kind: star}\n",
                              "c"));
}

TEST(draw_matrix, names_kind_and_narrowest_rate) {
  EXPECT_EQ(draw_matrix(two_nodes()),
            "             gpu0     gpu1     nic0\n"
            "gpu0            X    NV100  PCI12.5\n"
            "gpu1        NV100        X  PCI12.5\n"
            "nic0      PCI12.5  PCI12.5        X\n");
}

TEST(draw_matrix, shows_between_devices_what_messages_take) {
  // NVLink of two devices, though the NIC beside them is nearer.
  const auto c = read_cluster(config_node::parse_text(
      "name: c\ndevice: ideal\nnodes: 1\ndevices_per_node: 2\n"
      "node: {links: graph, graph: {vertices: [{name: a, kind: device}, {name: b, kind: device}, "
      "{name: n, kind: nic}], links: ["
      "{from: a, to: b, bandwidth: 50 GB/s, latency: 1.5 us, kind: nvlink}, "
      "{from: a, to: n, bandwidth: 10 GB/s, latency: 0.6 us, kind: pcie}, "
      "{from: b, to: n, bandwidth: 10 GB/s, latency: 0.6 us, kind: pcie}]}}\n"
      "nics: {per_node: 1, bandwidth: 10 GB/s}\nfabric: {kind: star}\n",
      "c"));
  EXPECT_EQ(draw_matrix(c),
            "             gpu0     gpu1     nic0\n"
            "gpu0            X     NV50    PCI10\n"
            "gpu1         NV50        X    PCI10\n"
            "nic0        PCI10    PCI10        X\n");
}

TEST(bisection, is_what_one_half_can_send_the_other) {
  EXPECT_NEAR(bisection(two_nodes()).value(), 12.5e9, 1);  // through one NIC
  const auto ring = read_cluster(config_node::parse_text(
      "name: c\ndevice: ideal\ngraph: {vertices: [{name: a, kind: device}, {name: b, kind: "
      "device}, "
      "{name: c, kind: device}, {name: d, kind: device}], links: ["
      "{from: a, to: b, bandwidth: 1 GB/s}, {from: b, to: c, bandwidth: 2 GB/s}, "
      "{from: c, to: d, bandwidth: 1 GB/s}, {from: d, to: a, bandwidth: 3 GB/s}]}\n",
      "c"));
  EXPECT_NEAR(bisection(ring).value(), 5e9, 1);  // b to c and a to d
}

TEST(draw_svg, is_well_formed_and_draws_every_part) {
  auto c = two_nodes();
  c.name = "<&\">";
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(draw_svg(c).c_str()));
  const auto svg = document.child("svg");
  EXPECT_STREQ(svg.child_value("title"), "<&\">");
  const auto rects = svg.children("rect"), lines = svg.children("line");
  // A node: 2 devices, a NIC, 2 PCIe switches, a socket; the star; the background.
  EXPECT_EQ(std::distance(rects.begin(), rects.end()), 2 * 6 + 1 + 1);
  // A node: 2 devices, NIC, 2 uplinks, the bridge; 2 to the star.
  EXPECT_EQ(std::distance(lines.begin(), lines.end()), 2 * 6 + 2);
}

/// Of the first cable, gpu0 to its PCIe switch, one direction carries 30 %, the other 80 %.
TEST(draw_svg, shows_the_busier_direction) {
  const auto c = two_nodes();
  std::vector<double> use(c.network.links().size());
  use[0] = 0.3;
  use[1] = 0.8;
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(draw_svg(c, use).c_str()));
  int red = 0;
  for (const auto& line : document.child("svg").children("line")) {
    if (std::string_view(line.attribute("stroke").value()) != "#c1121f") continue;
    EXPECT_THAT(line.child_value("title"), testing::EndsWith(", 80.0 % used"));
    ++red;
  }
  EXPECT_EQ(red, 1);
}

TEST(draw_svg, refuses_what_nobody_could_see) {
  // 1024 nodes of 17, 32 x 8 leaves, 32 spines.
  EXPECT_ERROR(draw_svg(read_cluster("nd-h100-v5", {.nodes = 1024})), input_error,
               "nd-h100-v5: 17696 parts are too many to draw, at most 4096; fewer with --nodes");
}

}  // namespace drawing_test
}  // namespace attnsim::formats
