#include "formats/card.hpp"

#include <gmock/gmock.h>

#include "formats/cluster_file.hpp"
#include "model/cluster/cluster.hpp"
#include "model/config.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace card_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string name(const card_hints& hints, const std::string& text = "",
                 const std::string& file = "f") {
  topology t;
  return find_card({file, text}, {}, hints, t).name;
}

TEST(find_card, the_user_knows_best) {
  topology t;
  EXPECT_EQ(find_card({"f", "NVIDIA H200"}, {.device = "l20"}, {.pci_id = 0x2330}, t).name, "L20");
  EXPECT_EQ(t.device, "l20");
  EXPECT_THAT(t.said.missing, IsEmpty());
}

TEST(find_card, then_the_pci_id_then_names) {
  EXPECT_EQ(name({.pci_id = 0x2335}, "NVIDIA H100 80GB HBM3"), "H200 SXM5");
  EXPECT_EQ(name({.links = 18}, "GPU 0: NVIDIA H200 (UUID: ...)"), "H200 SXM5");
  EXPECT_EQ(name({.links = 18}, "GPU 0: NVIDIA H200 NVL (UUID: ...)"), "H200 NVL");
  EXPECT_EQ(name({.links = 18}, "|   0  NVIDIA H20          On  |"), "H20");
  EXPECT_EQ(name({.links = 18}, "", "d/azure_ndv5-topo.xml"), "H100 SXM5");
  EXPECT_EQ(name({}, "\"name\": \"NDv2_1KB\""), "V100 SXM2");
  EXPECT_EQ(name({}, "xNVIDIA H200x, NVIDIA H2000"), "unknown");
  topology t;
  find_card({"f", "nvidia b200"}, {}, {}, t);
  EXPECT_EQ(t.device, "b200");
  EXPECT_THAT(t.said.assumed, ElementsAre("the GPUs are B200, by the name NVIDIA B200"));
}

TEST(find_card, one_that_fits_is_assumed) {
  topology t;
  EXPECT_EQ(find_card({"f", ""}, {}, {.sm = 100, .grace = true}, t).name, "GB200");
  EXPECT_THAT(t.said.assumed, ElementsAre("the GPUs are GB200, from sm 100, a NUMA node a GPU"));
  EXPECT_THAT(t.said.missing, ElementsAre("the GPUs' kind: --device"));
  EXPECT_EQ(t.device_doubt, "");
  EXPECT_EQ(name({.sm = 80, .links = 4}, ""), "A100 SXM4 40 GB");  // a bridge of fewer links
  EXPECT_EQ(name({.links = 5}), "unknown");
}

TEST(find_card, several_that_fit_are_said) {
  topology t;
  EXPECT_EQ(find_card({"f", ""}, {}, {.links = 18, .grace = false}, t).name, "H100 SXM5");
  EXPECT_EQ(
      t.device_doubt,
      "18 NVLinks a GPU, no NUMA node a GPU fit H100 SXM5, H200 SXM5, H20, H200 NVL, B200, B300");
  EXPECT_THAT(t.said.warnings, ElementsAre("the GPUs are taken for H100 SXM5, but " +
                                           t.device_doubt + ": --device names them"));
  topology grace;
  find_card({"f", ""}, {}, {.links = 18, .grace = true}, grace);
  EXPECT_EQ(grace.device_doubt, "18 NVLinks a GPU, a NUMA node a GPU fit GH200, GB200, GB300");
}

TEST(find_card, amd_by_its_architecture) {
  EXPECT_EQ(name({.gfx = "gfx908"}), "MI100");
  topology t;
  EXPECT_EQ(find_card({"f", ""}, {}, {.gfx = "gfx942"}, t).name, "MI300X");
  EXPECT_EQ(t.device_doubt, "gfx942 fit MI300X, MI325X, MI308X, MI300A");
}

TEST(find_card, a_doubt_goes_into_the_cluster_file_and_its_warnings) {
  const auto t = read_text("GPU0 GPU1 CPU Affinity\nGPU0 X NV18 0-7\nGPU1 NV18 X 0-7\n");
  const auto file = write_cluster_file(combine({t}, {}), {.name = "c"});
  EXPECT_THAT(file.text, HasSubstr("\nassumed: {device: \"18 NVLinks a GPU fit H100 SXM5, "));
  const auto c = read_cluster(config_node::parse_text(file.text, "c"));
  EXPECT_THAT(c.assumed, ElementsAre("device: 18 NVLinks a GPU fit " + t.device_doubt.substr(21)));
  EXPECT_THAT(
      read_cluster(config_node::parse_text(file.text, "c"), {.device = "h200-sxm5"}).assumed,
      IsEmpty());
}

}  // namespace card_test
}  // namespace attnsim::formats
