#include "model/topology_files.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "model/config.hpp"

namespace attnsim {
namespace topology_files_test {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(topology_files, finds_shipped_names_and_plain_files) {
  EXPECT_THAT(find_topology_file("devices", "ideal"), EndsWith("topologies/devices/ideal.yaml"));
  const auto path = find_topology_file("clusters", "star");
  EXPECT_EQ(find_topology_file("devices", path), path);
  EXPECT_THAT(shipped_names("clusters"), Contains("star"));
  EXPECT_THAT(shipped_names("clusters"), Not(Contains("ideal")));
}

TEST(topology_files, unknown_name_lists_the_shipped_ones) {
  try {
    find_topology_file("clusters", "no-such");
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_THAT(e.what(), testing::StartsWith("expected a file or one of: "));
    EXPECT_THAT(e.what(), HasSubstr("nd-h100-v5, "));
  }
}

TEST(topology_files, short_names_stand_for_shipped_ones) {
  EXPECT_THAT(find_topology_file("devices", "h200"), EndsWith("devices/h200-sxm5.yaml"));
  EXPECT_THAT(find_topology_file("devices", "b200"), EndsWith("devices/b200.yaml"));
  EXPECT_THAT(shipped_names("devices"), Not(Contains("h200")));
  const auto aliases = config_node::load(find_topology_file("", "aliases"));
  for (const auto& [folder, names] : aliases.entries()) {
    for (const auto& [name, meant] : names.entries()) {
      EXPECT_THAT(shipped_names(folder), Contains(meant.as<std::string>())) << name;
      EXPECT_THAT(shipped_names(folder), Not(Contains(name)));
    }
  }
}

TEST(topology_files, variable_names_a_folder_that_comes_first) {
  const auto root = std::filesystem::temp_directory_path() / "attnsim_topology_files_test";
  std::filesystem::create_directories(root / "clusters");
  std::ofstream(root / "clusters" / "star.yaml") << "name: mine\n";
  setenv("ATTNSIM_TOPOLOGIES", root.c_str(), 1);
  EXPECT_EQ(find_topology_file("clusters", "star"), (root / "clusters" / "star.yaml").string());
  EXPECT_THAT(shipped_names("clusters"), Contains("p5"));
  unsetenv("ATTNSIM_TOPOLOGIES");
  std::filesystem::remove_all(root);
}

}  // namespace topology_files_test
}  // namespace attnsim
