#include "ask/what_if.hpp"

#include <gmock/gmock.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace what_if_test {

using testing::ElementsAre;

TEST(what_if, doubles_from_one_value_to_the_other) {
  EXPECT_THAT(parse_what_if("seq=256K..1M").values, ElementsAre("256K", "512K", "1024K"));
  const auto rates = parse_what_if("nics.bandwidth=\"100 Gb/s\"..\"450 Gb/s\"");
  EXPECT_EQ(rates.key, "nics.bandwidth");
  EXPECT_THAT(rates.values, ElementsAre("100 Gb/s", "200 Gb/s", "400 Gb/s"));
}

TEST(what_if, refuses_what_is_no_range) {
  for (const auto& text : std::vector<std::string>{
           "seq", "seq=64K", "seq=1M..64K", "seq=a..b", "seq=1 s..2 m", "seq=...1", "seq=1.2.3..4",
           "seq=" + std::string(400, '9') + ".." + std::string(400, '9')}) {
    EXPECT_ERROR(parse_what_if(text), input_error,
                 "what-if: '" + text +
                     "': expected key=from..to, such as seq=64K..1M or "
                     "nics.bandwidth=\"100 Gb/s\"..\"1600 Gb/s\"");
  }
}

TEST(what_if, plans_for_each_value) {
  question q{.cluster = "star"};
  q.overrides.nodes = 4;
  q.sequence = 65536;
  const auto a = answer(q, parse_what_if("nics.bandwidth=100 Gb/s..400 Gb/s"), {"ring", "usp"});
  ASSERT_EQ(a.best.size(), 3u);
  ASSERT_EQ(a.schedules.size(), 2u);
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    const auto& ring = a.schedules[0].times[i];
    EXPECT_EQ(a.best[i].time, std::min(ring, a.schedules[1].times[i]));
    if (i > 0) {
      EXPECT_LE(ring, a.schedules[0].times[i - 1]);
    }
  }
}

TEST(what_if, says_where_the_best_changes) {
  what_if_answer a;
  for (const auto* name : {"ring", "ring", "usp"}) {
    a.best.emplace_back();
    a.best.back().chosen.schedule = name;
  }
  ASSERT_EQ(a.changes().size(), 1u);
  EXPECT_EQ(a.changes()[0].value, 2u);
  EXPECT_EQ(a.changes()[0].from, "ring");
  EXPECT_EQ(a.changes()[0].to, "usp");
}

}  // namespace what_if_test
}  // namespace attnsim::ask
