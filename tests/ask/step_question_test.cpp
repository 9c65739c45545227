#include "ask/step_question.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

TEST(step_fields, write_what_they_read) {
  step_question q;
  for (const auto& [name, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{"seq", "8192"},
                                                                  {"model", "llama3-8b"},
                                                                  {"tp", "4"},
                                                                  {"shard", "parameters"},
                                                                  {"dtype", "fp8-linear"},
                                                                  {"task", "prefill"},
                                                                  {"eager", "true"},
                                                                  {"expert-skew", "1.5"}})
    set(q, name, text);
  EXPECT_EQ(q.base.sequence, 8192);
  EXPECT_EQ(q.tensor, 4);
  EXPECT_EQ(
      written(q),
      "seq=8192 model=llama3-8b task=prefill tp=4 shard=parameters dtype=fp8-linear eager=true "
      "expert-skew=1.5");
}

TEST(step_fields, have_names_of_their_own) {
  for (const auto& f : step_fields()) EXPECT_EQ(find_step_field(f.name), &f) << f.name;
  EXPECT_EQ(find_step_field("heads"), nullptr);
}

TEST(step_fields, say_what_they_expect) {
  step_question q;
  EXPECT_ERROR(set(q, "recompute", "some"), input_error,
               "recompute: 'some': expected one of: none, selective, full");
  EXPECT_ERROR(set(q, "tp", "0"), input_error,
               "tp: '0': expected a whole number of at least 1, such as 8, 128K or 1M");
  EXPECT_ERROR(set(q, "expert-skew", "0.5"), input_error,
               "expert-skew: '0.5': expected a number from 1 to 1000");
  EXPECT_ERROR(
      set(q, "schedule", "rings"), input_error, std::string("schedule: 'rings': ") + [] {
        try {
          question plain;
          set(plain, "schedule", "rings");
        } catch (const input_error& e) {
          return std::string(e.what()).substr(std::string("schedule: 'rings': ").size());
        }
        return std::string();
      }());
}

}  // namespace
}  // namespace attnsim::ask
