#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace taccl_test {

using testing::AllOf;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(taccl, units_follow_from_the_remote_alpha) {
  const auto t = read_topology(read_source("tests/formats/data/taccl/mesh-64KB.json"), {});
  // 2.6 us / 5.2 = 0.5 us: 64 KiB in 2.5 x 0.5 us and in 5 x 0.5 us.
  EXPECT_EQ(counts_of(t), (counts{8, 1, 0, 0, 16 + 8}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(DoubleNear(65536 / 1.25e-6 / 1e9, 1e-9)));
  EXPECT_THAT(rates(t, "gpu0", "gpu2"), ElementsAre(DoubleNear(65536 / 2.5e-6 / 1e9, 1e-9)));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 65536 / 5e-6);
  EXPECT_DOUBLE_EQ(t.cables[0].latency.value(), 0.3e-6);
}

TEST(taccl, refuses_bad_files) {
  const auto file = [](const std::string& name, const std::string& rest) {
    return read_text("{\"name\": \"" + name + "\",\n\"gpus_per_node\": 8, \"nics_per_node\": 1,\n" +
                     rest + "}");
  };
  EXPECT_ERROR(read_text("{\"gpus_per_node\": 8,\n"), input_error, "f:2: not valid JSON");
  EXPECT_ERROR(read_text("[]", {}, "taccl"), input_error,
               "f:1: expected an object of keys and values");
  EXPECT_ERROR(read_text("{\"gpus_per_node\": 8}"), input_error, "f:1: name: missing");
  EXPECT_ERROR(file("a", "\"node_betas_list\": [1, 2]"), input_error,
               "f:3: node_betas_list: '[1,2]': expected one class of links");
  EXPECT_ERROR(file("NDv2", "\"node_betas_list\": [1]"), input_error,
               "f:3: node_betas_list: '[1]': expected two classes of links for NDv2");
  EXPECT_ERROR(file("a", "\"node_betas_list\": [\"tbd\"]"), input_error,
               "f:3: node_betas_list: '\"tbd\"': expected a number above 0");
  EXPECT_ERROR(file("a", "\"node_betas_list\": [1], \"remote_alpha\": 1"), input_error,
               "f:1: name: 'a': expected the chunk's size at the end, such as NDv2_1MB");
  EXPECT_ERROR(read_text("{\"name\": \"a\", \"gpus_per_node\": 0}"), input_error,
               "f:1: gpus_per_node: '0': expected a whole number from 1 to 1024");
  EXPECT_ERROR(
      read_text("{\"gpus_per_node\": " + std::string(20, '[') + std::string(20, ']') + "}"),
      input_error, "f:1: expected nesting of at most 16");
}

TEST(taccl_examples, ndv2_agrees_at_all_chunk_sizes) {
  // A doubled NVLink of a V100 has 50 GB/s of which 45 are measured, a single one half of it.
  READ_SHARED_OR_SKIP(large, "taccl/topo-ndv2-1MB.json", {});
  EXPECT_EQ(counts_of(large), (counts{8, 1, 0, 0, 16 + 8}));
  EXPECT_THAT(rates(large, "gpu0", "gpu1"), ElementsAre(DoubleNear(1048576 / 23e-6 / 1e9, 1e-6)));
  READ_SHARED_OR_SKIP(medium, "taccl/topo-ndv2-32KB.json", {});
  EXPECT_THAT(rates(medium, "gpu0", "gpu1"), ElementsAre(DoubleNear(32768 / 0.718e-6 / 1e9, 1e-6)));
  READ_SHARED_OR_SKIP(small, "taccl/topo-ndv2-1KB.json", {});
  EXPECT_THAT(rates(small, "gpu0", "gpu1"), ElementsAre(DoubleNear(1024 / 0.0224e-6 / 1e9, 1e-6)));
}

TEST(taccl_examples, dgx2) {
  READ_SHARED_OR_SKIP(t, "taccl/topo-dgx2-1MB.json", {});
  EXPECT_EQ(counts_of(t), (counts{16, 8, 1, 0, 16 + 16}));
  EXPECT_THAT(rates(t, link_kind::nvlink),
              AllOf(SizeIs(16), Each(DoubleNear(1048576 / 8e-6 / 1e9, 1e-6))));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 1048576 / 105e-6);
  READ_SHARED_OR_SKIP(small, "taccl/topo-dgx2-1KB.json", {});
  EXPECT_THAT(rates(small, link_kind::nvlink), Each(DoubleNear(1024 / 0.01e-6 / 1e9, 1e-6)));
  EXPECT_THAT(small.said.assumed,
              ElementsAre("topo-dgx2-1KB.json: the GPUs are V100 SXM3, by the name DGX2",
                          HasSubstr("times in units of 10.00 ns")));
}

}  // namespace taccl_test
}  // namespace attnsim::formats
