#include "sweep/point_reader.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::sweep {
namespace point_reader_test {

TEST(point_reader, a_point_is_a_question_by_its_keys) {
  const auto s = parse_spec(
      "{cluster: dgx-h100, nodes: 1, seq: [64K, 128K], heads: 8, node.bandwidth: 100 GB/s, "
      "pass: forward, grid: ''}",
      "s.yaml");
  point_reader reader(s);
  ask::question q{.cluster = "dgx-h100"};
  q.overrides = {.nodes = 1, .set = {{"node.bandwidth", "100 GB/s"}}};
  q.heads = 8;
  q.pass = pass_kind::forward;
  for (const std::int64_t tokens : {65536, 131072}) {
    q.sequence = tokens;
    EXPECT_EQ(reader.predict(s.points[tokens == 65536 ? 0 : 1]).time,
              ask::predict(q, ask::cluster_of(q)).time);
  }
}

TEST(point_reader, messages_name_the_place_in_the_file) {
  const auto s = parse_spec("cluster: dgx-h100\nseq: 64K\nheads: [8, many]\n", "s.yaml");
  point_reader reader(s);
  EXPECT_NO_THROW(reader.check(s.points[0]));
  EXPECT_ERROR(
      reader.predict(s.points[1]), input_error,
      "s.yaml:3: heads[1]: 'many': expected a whole number of at least 1, such as 8, 128K or 1M");
  const auto without = parse_spec("seq: 64K\n", "s.yaml");
  EXPECT_ERROR(point_reader(without).check(without.points[0]), input_error,
               "s.yaml: cluster: is required");
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
