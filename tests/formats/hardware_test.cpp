#include "formats/hardware.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "model/cluster/cluster.hpp"

namespace attnsim::formats {
namespace hardware_test {

using testing::Contains;

TEST(hardware, finds_devices_by_what_files_tell) {
  const auto& known = known_hardware();
  EXPECT_EQ(known.by_pci_id(0x2335)->profile, "h200-sxm5");
  EXPECT_EQ(known.by_pci_id(1), nullptr);
  EXPECT_EQ(known.by_profile("b200").nvlinks, 18);
  EXPECT_EQ(&known.by_profile("none"), &known.unknown);
}

TEST(hardware, names_profiles_that_are_shipped) {
  const auto shipped = shipped_devices();
  for (const auto& d : known_hardware().devices) {
    if (d.profile.empty()) continue;
    EXPECT_THAT(shipped, Contains(d.profile)) << d.name;
  }
}

TEST(hardware, a_mesh_gives_each_device_all_its_links) {
  const auto& known = known_hardware();
  EXPECT_EQ(known.mesh("V100 SXM2", 4), nullptr);
  const auto* mesh = known.mesh("V100 SXM2", 8);
  ASSERT_NE(mesh, nullptr);
  for (std::size_t a = 0; a < 8; ++a) {
    int links = 0;
    for (std::size_t b = 0; b < 8; ++b) {
      links += mesh->links[a][b];
      EXPECT_EQ(mesh->links[a][b], mesh->links[b][a]);
    }
    EXPECT_EQ(links, 6);
  }
}

TEST(hardware, a_nic_is_as_fast_as_its_slot_allows) {
  EXPECT_DOUBLE_EQ(known_hardware().nic_rate(32).value(), 50e9);
  EXPECT_DOUBLE_EQ(known_hardware().nic_rate(16).value(), 25e9);
  EXPECT_DOUBLE_EQ(known_hardware().nic_rate(2.5).value(), 12.5e9);
}

TEST(pcie_rate, counts_line_coding) {
  EXPECT_DOUBLE_EQ(pcie_rate(5, 16).value(), 8e9);                // 8b/10b
  EXPECT_DOUBLE_EQ(pcie_rate(16, 16).value(), 32e9 * 128 / 130);  // 128b/130b
}

}  // namespace hardware_test
}  // namespace attnsim::formats
