#include "model/cost/group_transfer.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace {

cluster two_nodes_of_two() {
  auto c = read_cluster(config_node::parse_text(
      "name: t\n"
      "device: {name: d, peak: {half: 1 TFLOP/s, fp32: 1 TFLOP/s}, memory: {capacity: 1 GiB, "
      "bandwidth: 1 TB/s}, multiprocessors: 1}\n"
      "nodes: 2\ndevices_per_node: 2\n"
      "node: {links: nvswitch, bandwidth: 100 GB/s}\n"
      "nics: {per_node: 1, bandwidth: 10 GB/s, attach: shared}\n"
      "fabric: {kind: star}\n",
      "t.yaml"));
  return c;
}

TEST(group_transfer, one_group_takes_as_long_as_its_collective) {
  const auto c = two_nodes_of_two();
  const auto t = transfer_in(c, collective_kind::all_gather, {{0, 1}});
  const auto alone =
      stages(c, {collective_kind::all_gather, collective_algorithm::ring}, {0, 1}, 1e9);
  EXPECT_DOUBLE_EQ(t.time_alone(1e9).value(), time_alone(c, alone).value());
  EXPECT_DOUBLE_EQ(t.time_alone(1e9).value(), 0.5e9 / 100e9);
}

TEST(group_transfer, groups_share_the_links_they_have_in_common) {
  const auto c = two_nodes_of_two();
  const auto one = transfer_in(c, collective_kind::all_gather, {{0, 2}});
  const auto both = transfer_in(c, collective_kind::all_gather, {{0, 2}, {1, 3}});
  EXPECT_DOUBLE_EQ(one.time_alone(1e9).value(), 0.5e9 / 10e9);
  EXPECT_DOUBLE_EQ(both.time_alone(1e9).value(), 2 * 0.5e9 / 10e9);
}

TEST(group_transfer, an_all_reduce_goes_round_twice_and_an_all_to_all_once) {
  const auto c = two_nodes_of_two();
  EXPECT_DOUBLE_EQ(transfer_in(c, collective_kind::all_reduce, {{0, 1}}).bytes_a_byte, 1);
  EXPECT_DOUBLE_EQ(transfer_in(c, collective_kind::all_to_all, {{0, 1}}).bytes_a_byte, 0.5);
  EXPECT_DOUBLE_EQ(send_in(c, {{0, 1}}).time_alone(1e9).value(), 1e9 / 100e9);
}

TEST(group_transfer, of_single_devices_moves_nothing) {
  const auto c = two_nodes_of_two();
  EXPECT_FALSE(transfer_in(c, collective_kind::all_gather, {{0}, {1}}).moves());
  EXPECT_EQ(transfer_in(c, collective_kind::all_gather, {}).time_alone(1e9), seconds());
}

}  // namespace
}  // namespace attnsim
