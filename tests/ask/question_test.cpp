#include "ask/question.hpp"

#include <gmock/gmock.h>

#include <set>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

/// A value of every field that is not its usual one.
const std::vector<std::pair<std::string, std::string>> samples{
    {"nodes", "2"},          {"device", "h200-sxm5"},
    {"host", "pytorch"},     {"ranks", "8"},
    {"set", "a.b=c"},        {"seq", "65536"},
    {"documents", "100,60"}, {"batch", "3"},
    {"heads", "64"},         {"kv-heads", "8"},
    {"head-dim", "64"},      {"model", "llama3-8b"},
    {"mask", "full"},        {"window", "4096"},
    {"dtype", "fp16"},       {"pass", "forward"},
    {"pad", "true"},         {"schedule", "mesh"},
    {"kv-order", "direct"},  {"grid", "4x2"},
    {"ulysses", "2"},        {"tp", "4"},
    {"tokens", "striped"},   {"placement", "rails"},
    {"kernel", "fa3"},       {"reduction", "ring"},
    {"merges", "unfused"},   {"launch-order", "compute-first"},
    {"partials", "fp32"},    {"gradients", "fp32"},
    {"by", "analytic"},
};

TEST(fields, every_one_has_a_sample_here_and_a_name_of_its_own) {
  std::set<std::string> names, sampled;
  for (const auto& f : fields()) EXPECT_TRUE(names.emplace(f.name).second) << f.name;
  for (const auto& [name, value] : samples) sampled.insert(name);
  EXPECT_EQ(names, sampled);
}

TEST(fields, what_is_read_is_written_again) {
  for (const auto& [name, value] : samples) {
    question q;
    EXPECT_EQ(find_field(name)->write(q), "") << name;
    set(q, name, value);
    EXPECT_EQ(find_field(name)->write(q), value) << name;
  }
}

TEST(fields, the_usual_value_is_that_of_an_empty_question) {
  for (const auto& f : fields()) {
    if (f.usual.empty()) continue;
    question q;
    f.read(q, std::string(f.usual));
    EXPECT_EQ(f.write(q), "") << f.name;
  }
}

TEST(fields, say_what_is_wrong_with_a_value) {
  question q;
  const auto whole = "expected a whole number of at least 1, such as 8, 128K or 1M";
  EXPECT_ERROR(set(q, "seq", "64k"), input_error, std::string("seq: '64k': ") + whole);
  EXPECT_ERROR(set(q, "nodes", "0"), input_error, std::string("nodes: '0': ") + whole);
  EXPECT_ERROR(set(q, "grid", "4x"), input_error, "grid: '4x': expected ROWSxCOLUMNS, such as 8x4");
  EXPECT_ERROR(set(q, "tp", "2M"), input_error, "tp: '2M': expected at most 1048576 ranks");
  EXPECT_ERROR(set(q, "pad", "yes"), input_error, "pad: 'yes': expected true or false");
  EXPECT_ERROR(set(q, "set", "=4"), input_error, "set: '=4': expected key.path=value");
  EXPECT_ERROR(set(q, "by", "magic"), input_error,
               "by: 'magic': expected one of: simulation, analytic");
  EXPECT_ERROR(set(q, "documents", "64K*9999999999"), input_error,
               "documents: '64K*9999999999': expected at most 65536 documents");
}

TEST(fields, an_error_names_its_field) {
  question q;
  try {
    set(q, "kv-heads", "x");
    FAIL();
  } catch (const input_error& e) {
    EXPECT_EQ(e.field(), "kv-heads");
  }
  q.cluster = "dgx-h100";
  set_key(q, "nics.speed", "3");
  try {
    cluster_of(q);
    FAIL();
  } catch (const input_error& e) {
    EXPECT_EQ(e.field(), "set");
    EXPECT_THAT(e.what(), testing::StartsWith("set: nics.speed: unknown key"));
  }
}

TEST(question, takes_the_schedules_usual_tokens_and_placement) {
  question q;
  EXPECT_EQ(strategy_of(q, mask_kind::causal).tokens, token_layout::zigzag);
  EXPECT_EQ(strategy_of(q, mask_kind::full).tokens, token_layout::contiguous);
  q.schedule = "attention2d";
  EXPECT_EQ(strategy_of(q, mask_kind::causal).order, kv_order::transposed);
  q.grid = {4, 2};
  EXPECT_EQ(strategy_of(q, mask_kind::causal).order, kv_order::direct);
  q.schedule = "hierarchical-allgather";
  EXPECT_EQ(strategy_of(q, mask_kind::causal).placement, "column-in-node");
  q.placement = "rails";
  EXPECT_EQ(strategy_of(q, mask_kind::causal).placement, "rails");
}

TEST(question, takes_heads_of_the_model_unless_given) {
  question q;
  EXPECT_ERROR(problem_of(q, 1), input_error, "seq: is required");
  q.sequence = 1000;
  EXPECT_EQ(problem_of(q, 1).kv_heads, 32);
  q.model = "llama3-8b";
  EXPECT_EQ(problem_of(q, 1).kv_heads, 8);
  q.kv_heads = 4;
  EXPECT_EQ(problem_of(q, 1).kv_heads, 4);
  q.pad = true;
  EXPECT_EQ(problem_of(q, 16).padding, 8);
}

TEST(question, has_as_many_ranks_as_the_cluster_at_most) {
  question q{.cluster = "dgx-h100"};
  q.overrides.nodes = 2;
  const auto c = cluster_of(q);
  EXPECT_EQ(ranks_of(q, c), 16);
  q.ranks = 17;
  EXPECT_ERROR(ranks_of(q, c), infeasible,
               "ranks: '17': dgx-h100 has 16 devices; feasible: 1 to 16, or more with more nodes");
}

}  // namespace
}  // namespace attnsim::ask
