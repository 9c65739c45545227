#include "formats/installed_cards.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.hpp"

namespace attnsim::formats {
namespace installed_cards_test {

/// /sys/bus/pci/devices of a machine.
struct machine {
  temporary_folder folder;

  void add(const std::string& address, const char* vendor, const char* device,
           const char* device_class) {
    const std::filesystem::path at = folder.file(address);
    std::filesystem::create_directory(at);
    std::ofstream(at / "vendor") << vendor << '\n';
    std::ofstream(at / "device") << device << '\n';
    std::ofstream(at / "class") << device_class << '\n';
  }

  std::vector<installed_cards> cards() const { return find_installed_cards(folder.file("")); }
};

TEST(installed_cards, are_counted_by_kind_with_their_profile) {
  machine m;
  m.add("0000:19:00.0", "0x10de", "0x2330", "0x030200");
  m.add("0000:3b:00.0", "0x10de", "0x2330", "0x030200");
  m.add("0000:05:00.0", "0x1002", "0x74a1", "0x120000");
  const auto cards = m.cards();
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(pci_name(cards[0].pci_id), "1002:74a1");
  EXPECT_EQ(cards[0].profile, "mi300x");
  EXPECT_EQ(cards[1].name, "H100 SXM5");
  EXPECT_EQ(cards[1].profile, "h100-sxm5");
  EXPECT_EQ(cards[1].count, 2);
}

TEST(installed_cards, that_nobody_described_have_no_name) {
  machine m;
  m.add("0000:01:00.0", "0x10de", "0xffff", "0x030000");
  ASSERT_EQ(m.cards().size(), 1u);
  EXPECT_EQ(m.cards()[0].name, "");
  EXPECT_EQ(m.cards()[0].profile, "");
}

TEST(installed_cards, are_neither_network_cards_nor_other_makers) {
  machine m;
  m.add("0000:02:00.0", "0x15b3", "0x1021", "0x020000");
  m.add("0000:03:00.0", "0x10de", "0x22a3", "0x068000");  // an NVSwitch
  m.add("0000:04:00.0", "0x1a03", "0x2000", "0x030000");
  m.add("0000:06:00.0", "", "", "");
  EXPECT_TRUE(m.cards().empty());
}

TEST(installed_cards, are_none_without_the_folder) {
  EXPECT_TRUE(find_installed_cards("/none/such").empty());
}

}  // namespace installed_cards_test
}  // namespace attnsim::formats
