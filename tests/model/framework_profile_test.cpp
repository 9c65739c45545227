#include "model/schedule/framework_profile.hpp"

#include <gmock/gmock.h>

#include "model/cluster/cluster.hpp"
#include "model/config.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace {

framework_profile framework_of(const std::string& text) {
  return read_framework(config_node::parse_text(text, "f.yaml"));
}

TEST(read_framework, how_it_runs_a_schedule) {
  const auto f = framework_of(
      "name: f\nsource: s\nhost: pytorch\nmerges: unfused\npartials: fp32\ngradients: fp32\n"
      "launch_order: compute-first\ncopies: {joined: every, gathered: true, returned: true, "
      "separate: true, "
      "rate: 0.4}\n"
      "repeats_keys: true\nwaits: [exchange, all_to_all]\n");
  EXPECT_EQ(f.name, "f");
  EXPECT_EQ(f.source, "s");
  EXPECT_EQ(f.host, "pytorch");
  EXPECT_EQ(f.merges, merge_kind::unfused);
  EXPECT_EQ(f.partials, precision::fp32);
  EXPECT_EQ(f.gradients, precision::fp32);
  EXPECT_EQ(f.launch, launch_order::compute_first);
  EXPECT_EQ(f.copies, (framework_copies{.joined = framework_copies::joining::every,
                                        .gathered = true,
                                        .returned = true,
                                        .separate = true,
                                        .rate = 0.4}));
  EXPECT_TRUE(f.repeats_keys);
  EXPECT_EQ(f.waits, (host_waits{.exchange = true, .all_to_all = true}));
}

TEST(read_framework, what_it_does_not_say_is_as_the_schedule_has_it) {
  const auto f = framework_of("name: f\n");
  const strategy usual;
  EXPECT_EQ(f.host, "");
  EXPECT_EQ(f.merges, usual.merges);
  EXPECT_EQ(f.partials, usual.partials);
  EXPECT_EQ(f.gradients, usual.gradients);
  EXPECT_EQ(f.launch, usual.launch);
  EXPECT_EQ(f.copies, usual.copies);
  EXPECT_EQ(f.waits, usual.waits);
}

TEST(read_framework, refuses) {
  EXPECT_ERROR(framework_of("source: s\n"), input_error, "f.yaml:1: name: missing");
  EXPECT_ERROR(
      framework_of("name: f\nmerge: fused\n"), input_error,
      "f.yaml:2: merge: unknown key; expected one of: name, source, host, merges, partials, "
      "gradients, launch_order, copies, repeats_keys, waits; did you mean merges?");
  EXPECT_ERROR(framework_of("name: f\nmerges: half\n"), input_error,
               "f.yaml:2: merges: 'half': expected one of: fused, unfused");
  EXPECT_ERROR(framework_of("name: f\ncopies: {joined: once}\n"), input_error,
               "f.yaml:2: copies.joined: 'once': expected one of: none, first, every");
  EXPECT_ERROR(framework_of("name: f\ncopies: {gathered: 2}\n"), input_error,
               "f.yaml:2: copies.gathered: '2': expected true or false");
  EXPECT_ERROR(framework_of("name: f\ncopies: {rate: 0}\n"), input_error,
               "f.yaml:2: copies.rate: '0': expected a share above 0 and at most 1");
  EXPECT_ERROR(framework_of("name: f\nwaits: [all-to-all]\n"), input_error,
               "f.yaml:2: waits[0]: 'all-to-all': expected one of: exchange, all_gather, "
               "reduce_scatter, all_to_all; did you mean all_to_all?");
}

TEST(shipped_frameworks, can_be_read_and_have_a_host_that_is_shipped) {
  const auto hosts = shipped_hosts();
  for (const auto& name : shipped_frameworks()) {
    const auto f = read_framework_file(name);
    EXPECT_EQ(f.name, name);
    EXPECT_NE(f.source, "") << name;
    if (!f.host.empty()) {
      EXPECT_THAT(hosts, testing::Contains(f.host)) << name;
    }
  }
  EXPECT_ERROR(read_framework_file("jax"), std::invalid_argument,
               "expected a file or one of: megatron, ring-flash-attention, torchtitan, usp, vllm");
}

}  // namespace
}  // namespace attnsim
