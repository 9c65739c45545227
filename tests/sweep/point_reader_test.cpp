#include "sweep/point_reader.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "ask/figures.hpp"
#include "model/error.hpp"
#include "model/topology_files.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::sweep {
namespace point_reader_test {

TEST(point_reader, a_point_is_a_question_by_its_keys) {
  const auto s = parse_spec(
      "{cluster: dgx-h100, nodes: 1, seq: [64K, 128K], heads: 8, node.bandwidth: 100 GB/s, "
      "pass: forward, grid: ''}",
      "s.yaml");
  point_reader<ask::question> reader(s);
  ask::question q{.cluster = "dgx-h100"};
  q.overrides = {.nodes = 1, .set = {{"node.bandwidth", "100 GB/s"}}};
  q.heads = 8;
  q.pass = pass_kind::forward;
  for (const std::int64_t tokens : {65536, 131072}) {
    q.sequence = tokens;
    EXPECT_EQ(reader.answer_to(s.points[tokens == 65536 ? 0 : 1]).time,
              ask::predict(q, ask::cluster_of(q)).time);
  }
}

TEST(point_reader, clusters_that_are_kept_are_not_mixed_up) {
  // 16 devices each: more than are kept.
  std::string bandwidths;
  for (int i = 0; i < 10; ++i)
    bandwidths += (i > 0 ? ", " : "") + std::to_string(100 + i) + " Gb/s";
  const auto s = parse_spec(
      "{cluster: dgx-h100, nodes: 2, seq: [512K, 1M], heads: 8, by: analytic, schedule: ring, "
      "nics.bandwidth: [" +
          bandwidths + "]}",
      "s.yaml");
  point_reader<ask::question> reader(s, 100);
  for (const auto& p : s.points) {
    EXPECT_EQ(reader.answer_to(p).time, point_reader<ask::question>(s).answer_to(p).time);
  }
  EXPECT_NE(reader.answer_to(s.points[0]).time, reader.answer_to(s.points[9]).time);
}

/// Some 20 clusters of 1,024 devices, as 300 of 64 are: read again, they would not be found any more.
TEST(point_reader, clusters_of_a_long_list_of_bandwidths_are_kept) {
  std::string bandwidths;
  for (int i = 0; i < 20; ++i)
    bandwidths += (i > 0 ? ", " : "") + std::to_string(100 + i) + " Gb/s";
  const temporary_folder folder;
  const auto file = folder.file("cluster.yaml");
  std::filesystem::copy_file(find_topology_file("clusters", "nd-h100-v5"), file);
  const auto s = parse_spec("{cluster: " + file +
                                ", nodes: 128, ranks: 8, seq: [64K, 128K], heads: 8, by: analytic, "
                                "schedule: ring, nics.bandwidth: [" +
                                bandwidths + "]}",
                            "s.yaml");
  point_reader<ask::question> reader(s);
  for (std::size_t i = 0; i < 20; ++i) reader.answer_to(s.points[i]);
  std::filesystem::remove(file);
  for (std::size_t i = 20; i < 40; ++i) EXPECT_NO_THROW(reader.answer_to(s.points[i]));
}

/// What belongs to a device, to links or to the order of points is not mixed up among points that share their work.
TEST(point_reader, points_in_any_order_are_each_as_alone) {
  const auto s = parse_spec(
      "{nics.bandwidth: [50 Gb/s, 400 Gb/s], seq: [16K, 64K], schedule: [ring, mesh], device: "
      "[h100-sxm5, h20], "
      "node.latency: [0.5 us, 5 us], cluster: nd-h100-v5, nodes: 2, heads: 16, mask: causal}",
      "s.yaml");
  point_reader<ask::question> reader(s);
  const auto expect_as_alone = [&](const point& p) {
    const auto shared = reader.answer_to(p), alone = point_reader<ask::question>(s).answer_to(p);
    for (const auto& f : ask::figures<prediction>()) EXPECT_EQ(f.get(shared), f.get(alone));
  };
  for (const auto& p : s.points) expect_as_alone(p);
  for (std::size_t i = 0; i < s.points.size(); i += 5) expect_as_alone(s.points[i]);
}

TEST(point_reader, messages_name_the_place_in_the_file) {
  const auto s = parse_spec("cluster: dgx-h100\nseq: 64K\nheads: [8, many]\n", "s.yaml");
  point_reader<ask::question> reader(s);
  EXPECT_NO_THROW(reader.check(s.points[0]));
  EXPECT_ERROR(
      reader.answer_to(s.points[1]), input_error,
      "s.yaml:3: heads[1]: 'many': expected a whole number of at least 1, such as 8, 128K or 1M");
  const auto without = parse_spec("seq: 64K\n", "s.yaml");
  EXPECT_ERROR(point_reader<ask::question>(without).check(without.points[0]), input_error,
               "s.yaml: cluster: is required");
}

TEST(point_reader, a_point_of_scope_step_is_a_step_by_its_keys) {
  const auto s = parse_spec(
      "{scope: step, cluster: dgx-h100, nodes: 1, model: llama3-8b, seq: 32K, tp: [1, 2], cp: 4, "
      "shard: parameters, nics.bandwidth: 100 Gb/s}",
      "s.yaml");
  EXPECT_EQ(scope_of(s), scope::step);
  point_reader<ask::step_question> reader(s);
  ask::step_question q{.model = "llama3-8b"};
  q.base.cluster = "dgx-h100";
  q.base.overrides = {.nodes = 1, .set = {{"nics.bandwidth", "100 Gb/s"}}};
  q.base.sequence = 32768;
  q.context = 4;
  q.shard = sharding::parameters;
  for (const std::size_t i : {0, 1}) {
    q.tensor = i + 1;
    EXPECT_EQ(reader.answer_to(s.points[i]).time, ask::answer(q, ask::cluster_of(q.base)).time);
  }
}

TEST(point_reader, steps_have_fields_of_their_own) {
  const auto read = [](const std::string& key) {
    const auto s = parse_spec(
        "{scope: step, cluster: dgx-h100, nodes: 1, model: llama3-8b, seq: 8K, " + key + "}",
        "s.yaml");
    check(s);
  };
  EXPECT_NO_THROW(read("global-batch: 16"));
  EXPECT_ERROR(read("heads: 8"), input_error, "s.yaml:1: heads: '8': expected without scope step");
  EXPECT_ERROR(
      read("micro-bath: 2"), input_error,
      "s.yaml:1: micro-bath: unknown key; expected a field of the question or a key of the "
      "cluster file; did you mean micro-batch?");
}

TEST(scope_of, is_one_for_all_points) {
  EXPECT_EQ(scope_of(parse_spec("seq: 8K\n", "s.yaml")), scope::attention);
  EXPECT_EQ(scope_of(parse_spec("scope: attention\n", "s.yaml")), scope::attention);
  EXPECT_ERROR(scope_of(parse_spec("scope: stop\n", "s.yaml")), input_error,
               "s.yaml:1: scope: 'stop': expected one of: attention, step; did you mean step?");
  EXPECT_ERROR(scope_of(parse_spec("scope: [attention, step]\n", "s.yaml")), input_error,
               "s.yaml:1: scope[1]: 'step': expected one scope for all points of a sweep");
}

TEST(check, refuses_what_is_bad_at_every_point) {
  EXPECT_NO_THROW(check(
      parse_spec("{cluster: dgx-h100, nodes: 1, seq: 64K, mask: [full, causal], window: [0, 4096]}",
                 "s.yaml")));
  EXPECT_ERROR(check(parse_spec("{cluster: dgx-h100, nodes: 1, seq: 64K, mask: full, window: 4096}",
                                "s.yaml")),
               input_error,
               "s.yaml:1: window: '4096': expected a causal mask with a sliding window");
}

}  // namespace point_reader_test
}  // namespace attnsim::sweep
