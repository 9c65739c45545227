#include "sim/device_run.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace attnsim {
namespace {

/// A second a byte over link 0.
group_transfer over_link(link_id link = 0, double latency = 0) {
  return {.uses = {{link, 1.0}}, .latency = {.fixed = seconds(latency)}, .bytes_a_byte = 1};
}

device_profile slowed(double factor) {
  device_profile d;
  d.communication_slowdown = factor;
  return d;
}

TEST(device_run, streams_run_in_order) {
  const device_operation ops[] = {{.work = seconds(2)}, {.kind = 1, .work = seconds(3)}};
  const auto run = run_alike(slowed(1), ops, 2);
  EXPECT_DOUBLE_EQ(run.time.value(), 5);
  EXPECT_DOUBLE_EQ(run.start[1].value(), 2);
  EXPECT_DOUBLE_EQ(run.busy[0].value(), 2);
  EXPECT_DOUBLE_EQ(run.busy[1].value(), 3);
}

TEST(device_run, transfers_share_a_link_and_not_two) {
  const auto a = over_link(), b = over_link(), c = over_link(1);
  const device_operation same[] = {{.stream = 1, .transfer = &a, .buffer_bytes = 10},
                                   {.stream = 2, .transfer = &b, .buffer_bytes = 4}};
  const auto run = run_alike(slowed(1), same, 1);
  EXPECT_DOUBLE_EQ(run.end[1].value(), 8);
  EXPECT_DOUBLE_EQ(run.end[0].value(), 14);
  const device_operation other[] = {{.stream = 1, .transfer = &a, .buffer_bytes = 10},
                                    {.stream = 2, .transfer = &c, .buffer_bytes = 4}};
  EXPECT_DOUBLE_EQ(run_alike(slowed(1), other, 1).time.value(), 10);
}

TEST(device_run, kernels_are_slower_beside_a_transfer) {
  const auto t = over_link();
  const device_operation ops[] = {{.work = seconds(10)},
                                  {.stream = 1, .transfer = &t, .buffer_bytes = 5}};
  EXPECT_DOUBLE_EQ(run_alike(slowed(1.25), ops, 1).time.value(), 11);  // 4 in the first 5 s
  device_operation counted[] = {ops[0], ops[1]};
  counted[1].slows_kernels = false;
  EXPECT_DOUBLE_EQ(run_alike(slowed(1.25), counted, 1).time.value(), 10);
}

TEST(device_run, waits_are_for_the_latest_of_what_is_needed) {
  const auto t = over_link(0, 1);
  const device_operation ops[] = {{.kind = 0, .work = seconds(2)},
                                  {.kind = 1, .stream = 1, .transfer = &t, .buffer_bytes = 6},
                                  {.kind = 0, .work = seconds(1), .after = {1}}};
  const auto run = run_alike(slowed(1), ops, 2);
  EXPECT_DOUBLE_EQ(run.start[2].value(), 7);
  EXPECT_DOUBLE_EQ(run.waits[1].value(), 5);
  EXPECT_DOUBLE_EQ(run.time.value(), 8);
}

TEST(device_run, what_ends_last_is_waited_for) {
  const auto t = over_link();
  const device_operation ops[] = {{.work = seconds(2)},
                                  {.kind = 1, .stream = 1, .transfer = &t, .buffer_bytes = 6}};
  EXPECT_DOUBLE_EQ(run_alike(slowed(1), ops, 2).waits[1].value(), 4);
}

TEST(device_run, a_transfer_of_one_device_takes_no_time) {
  const group_transfer none;
  const device_operation ops[] = {{.stream = 1, .transfer = &none, .buffer_bytes = 6},
                                  {.work = seconds(1), .after = {0}}};
  EXPECT_DOUBLE_EQ(run_alike(slowed(1), ops, 1).time.value(), 1);
}

TEST(device_run, a_circle_is_refused) {
  const device_operation ops[] = {{.work = seconds(1), .after = {1}},
                                  {.stream = 1, .work = seconds(1), .after = {0}}};
  EXPECT_THROW(run_alike(slowed(1), ops, 1), std::logic_error);
}

}  // namespace
}  // namespace attnsim
