#include "ask/schedule_file.hpp"

#include <gmock/gmock.h>

#include "ask/predicted_run.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::ask {
namespace schedule_file_test {

using ::testing::HasSubstr;

std::string written_to(const temporary_folder& folder, const std::string& text) {
  return folder.write("found.yaml", text);
}

question asked() {
  question q{.cluster = "star"};
  q.overrides.nodes = 8;
  q.sequence = 8192;
  q.heads = 8;
  return q;
}

TEST(schedule_file, is_predicted_as_the_schedule_that_it_was_written_of) {
  const temporary_folder folder;
  auto q = asked();
  q.schedule = "composed";
  q.levels = parse_levels("queries-gather:2 keys-gather:2");
  q.ulysses = 2;
  q.parts = 2;
  q.placement = "custom:7,6,5,4,3,2,1,0";
  const auto c = cluster_of(q);
  const auto p = predict(q, c);
  auto again = asked();
  set(again, "schedule-file",
      written_to(folder, schedule_file_of(p.chosen, {.asked = "star", .time = p.time})));
  const auto read = predict(again, c);
  EXPECT_EQ(read.time, p.time);
  EXPECT_EQ(read.chosen.levels, p.chosen.levels);
  EXPECT_EQ(read.chosen.placement, p.chosen.placement);
}

TEST(schedule_file, refuses_what_is_no_schedules_field) {
  const temporary_folder folder;
  auto q = asked();
  EXPECT_THAT([&] { set(q, "schedule-file", written_to(folder, "schedule: ring\nseq: 4096\n")); },
              ::testing::ThrowsMessage<input_error>(HasSubstr("found.yaml:2: seq")));
}

TEST(schedule_file, names_the_place_of_a_bad_value) {
  const temporary_folder folder;
  auto q = asked();
  EXPECT_THAT(
      [&] { set(q, "schedule-file", written_to(folder, "schedule: composed\nparts: none\n")); },
      ::testing::ThrowsMessage<input_error>(HasSubstr("found.yaml:2: parts: 'none': expected")));
  EXPECT_THAT([&] { set(q, "schedule-file", "no-such-file.yaml"); },
              ::testing::ThrowsMessage<input_error>(HasSubstr("no-such-file.yaml")));
}

TEST(schedule_file, goes_with_a_schedule_that_reads_its_levels) {
  const temporary_folder folder;
  auto q = asked();
  set(q, "schedule-file", written_to(folder, "schedule: ring\nlevels: keys-ring:8\n"));
  EXPECT_THAT([&] { predict(q, cluster_of(q)); },
              ::testing::ThrowsMessage<input_error>(HasSubstr(
                  "levels: 'keys-ring:8': expected with a schedule that reads it: composed")));
}

}  // namespace schedule_file_test
}  // namespace attnsim::ask
