#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace hwloc_test {

using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(hwloc, reads_devices_where_they_hang_with_the_speeds_of_their_slots) {
  const auto t = read_topology(read_source("tests/formats/data/hwloc/two-h100.xml"), {});
  EXPECT_EQ(t.what, scope::node);
  EXPECT_EQ(t.device, "h100-sxm5");
  // A PCIe switch with GPU and NIC below a package, a GPU below the other, the NVSwitch. Cables: switch,
  // two GPUs, NIC, package to package, two to the NVSwitch. The Ethernet NIC and the display are left out.
  EXPECT_EQ(counts_of(t), (counts{2, 1, 1 + 2 + 1, 0, 1 + 2 + 1 + 1 + 2}));
  EXPECT_THAT(neighbours(t, "pcie0"), ElementsAre("cpu0", "gpu0", "nic0"));
  EXPECT_THAT(neighbours(t, "cpu1"), ElementsAre("cpu0", "gpu1"));
  EXPECT_THAT(rates(t, "gpu0", "pcie0"), ElementsAre(DoubleNear(63.015385, 1e-9)));
  EXPECT_THAT(rates(t, "nic0", "pcie0"), ElementsAre(DoubleNear(31.507692, 1e-9)));
  EXPECT_THAT(rates(t, "gpu1", "cpu1"), ElementsAre(DoubleNear(63.0154, 1e-3)));  // the card's
  EXPECT_THAT(rates(t, "gpu0", "nvswitch0"), ElementsAre(450));
  EXPECT_THAT(rates(t, "gpu1", "nvswitch0"), ElementsAre(450));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 50e9);
  EXPECT_THAT(t.said.read,
              ElementsAre("two-h100.xml: 2 GPUs, 1 NIC, 1 PCIe switch, 2 CPU domains"));
  EXPECT_THAT(t.said.assumed,
              Contains("two-h100.xml: 1 NIC without RDMA carry no traffic of attention: left out"));
  EXPECT_THAT(t.said.warnings, IsEmpty());
}

/// Two GPUs below a host bridge, `more` beside the objects.
std::string two_gpus(const std::string& more) {
  return "<topology version=\"2.0\"><object type=\"Machine\">"
         "<object type=\"Bridge\" bridge_type=\"0-1\">"
         "<object type=\"PCIDev\" gp_index=\"1\" pci_type=\"0302 [10de:20b2] [10de:0] a1\"/>"
         "<object type=\"PCIDev\" gp_index=\"2\" pci_type=\"0302 [10de:20b2] [10de:0] a1\"/>"
         "</object></object>\n" +
         more + "</topology>";
}

TEST(hwloc, direct_links_between_gpus) {
  const auto t = read_text(two_gpus(
      "<distances2 type=\"PCIDev\" nbobjs=\"2\" name=\"XGMIBandwidth\" indexing=\"gp\">"
      "<indexes>1 2 </indexes><u64values>1000000 100000 </u64values><u64values>100000 1000000 "
      "</u64values></distances2>"));
  EXPECT_EQ(counts_of(t), (counts{2, 0, 1, 0, 3}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(100));
}

TEST(hwloc, warns_where_links_are_not_told) {
  EXPECT_THAT(
      read_text(two_gpus("")).said.warnings,
      ElementsAre(
          "A100 SXM4 80 GB has 12 NVLinks, the file no NVLinkBandwidth or XGMIBandwidth: "
          "PCIe alone joins the GPUs; hwloc tells links where it was built with NVML or ROCm "
          "SMI"));
}

TEST(hwloc, refuses_what_has_no_gpu_or_no_square_matrix) {
  EXPECT_ERROR(
      read_text("<topology version=\"2.0\">\n<object type=\"Machine\"><object type=\"Package\">"
                "<object type=\"NUMANode\"/></object></object></topology>"),
      input_error,
      "f:1: hwloc's topology has 1 package, 1 NUMA node, 0 PCI devices and no GPU; expected PCI "
      "devices, as `lstopo --of "
      "xml` writes them on a node with GPUs");
  EXPECT_ERROR(read_text(two_gpus(
                   "<distances2hetero name=\"NVLinkBandwidth\"><indexes>PCIDev:1 PCIDev:2</indexes>"
                   "<u64values>1 2 3</u64values></distances2hetero>")),
               input_error, "f:2: <distances2hetero>: expected a matrix of 2 x 2 values, found 3");
  EXPECT_ERROR(read_text(two_gpus(
                   "<distances2hetero name=\"NVLinkBandwidth\"><indexes>PCIDev:1 PCIDev:2</indexes>"
                   "<u64values>1 fast 3 4</u64values></distances2hetero>")),
               input_error, "f:2: <distances2hetero>: 'fast': expected MB/s");
}

}  // namespace hwloc_test
}  // namespace attnsim::formats
