#include "formats/warnings.hpp"

#include <gmock/gmock.h>

#include "formats/from_cluster.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace warnings_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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

TEST(warnings_of, nvlink_by_way_of_one_device_is_no_way_over_a_cpu) {
  // A hybrid cube mesh of eight V100, the paste cut in the last affinity and before the rows of the NICs.
  const auto t = read_topology({"f",
                                "        GPU0    GPU1    GPU2    GPU3    GPU4    GPU5    GPU6    "
                                "GPU7    mlx5_0  mlx5_2  CPU Affinity\n"
                                "GPU0     X      NV1     NV1     NV2     NV2     SYS     SYS     "
                                "SYS     PIX     SYS     0-19,40-59\n"
                                "GPU1    NV1      X      NV2     NV1     SYS     NV2     SYS     "
                                "SYS     PIX     SYS     0-19,40-59\n"
                                "GPU2    NV1     NV2      X      NV2     SYS     SYS     NV1     "
                                "SYS     PHB     SYS     0-19,40-59\n"
                                "GPU3    NV2     NV1     NV2      X      SYS     SYS     SYS     "
                                "NV1     PHB     SYS     0-19,40-59\n"
                                "GPU4    NV2     SYS     SYS     SYS      X      NV1     NV1     "
                                "NV2     SYS     PIX     20-39,60-79\n"
                                "GPU5    SYS     NV2     SYS     SYS     NV1      X      NV2     "
                                "NV1     SYS     PIX     20-39,60-79\n"
                                "GPU6    SYS     SYS     NV1     SYS     NV1     NV2      X      "
                                "NV2     SYS     PHB     20-39,60-79\n"
                                "GPU7    SYS     SYS     SYS     NV1     NV2     NV1     NV2      "
                                "X      SYS     PHB     20-39,60-7"},
                               {});
  EXPECT_EQ(t.said.read[0], "f: 8 GPUs, 2 NICs");
  EXPECT_THAT(rates(t, "gpu0", "gpu3"), ElementsAre(50));
  EXPECT_THAT(rates(t, link_kind::nvlink), SizeIs(16));
  EXPECT_THAT(t.said.missing,
              Contains("f: 2 rows of the matrix: the paste is cut short, 1 pair of NICs unknown"));
  EXPECT_THAT(warnings_of(t), IsEmpty());
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

}  // namespace warnings_test
}  // namespace attnsim::formats
