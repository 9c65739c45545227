#include "formats/warnings.hpp"

#include <gmock/gmock.h>

#include "formats/from_cluster.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(warnings_of, shipped_cluster_without_faults) {
  EXPECT_THAT(warnings_of(from_cluster(read_cluster("nd-h100-v5", {.nodes = 64}))), IsEmpty());
}

TEST(warnings_of, nic_on_another_socket_and_pairs_without_peer_access) {
  const auto t = read_topology(read_source("tests/formats/data/nvidia-smi/four-gpus.txt"), {});
  // GPU3 is alone on its domain. NVLink joins 0 and 1, PCIe switches 0 and 2; 1 and 2 meet over the
  // host bridge, and three pairs with GPU3 over both domains.
  EXPECT_THAT(warnings_of(t),
              ElementsAre("1 device, the first gpu3: the nearest NIC is on another CPU domain",
                          "4 pairs of devices of a node without NVLink between them meet over a "
                          "CPU: NCCL may have no peer-to-peer access there and go through host "
                          "memory"));
}

TEST(warnings_of, oversubscription) {
  const auto c = read_cluster(
      config_node::parse_text("name: c\ndevice: ideal\nnodes: 8\ndevices_per_node: 1\n"
                              "nics: {per_node: 1, bandwidth: 10 GB/s}\n"
                              "fabric: {kind: fat-tree, nodes_per_leaf: 4, oversubscription: 2}\n",
                              "c"));
  // A leaf: 4 x 10 GB/s down, 20 GB/s up.
  EXPECT_THAT(warnings_of(from_cluster(c)),
              ElementsAre("2 switches oversubscribed; leaf0 has 40.00 GB/s down and 20.00 GB/s up, "
                          "2 to 1"));
}

}  // namespace
}  // namespace attnsim::formats
