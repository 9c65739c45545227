#include "ask/question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <set>

#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace question_test {

/// A value of every field that is not its usual one.
const std::vector<std::pair<std::string, std::string>> samples{
    {"nodes", "2"},
    {"device", "h200-sxm5"},
    {"host", "pytorch"},
    {"ranks", "8"},
    {"set", "a.b=c"},
    {"seq", "65536"},
    {"documents", "100,60"},
    {"prefix", "4096"},
    {"cache-lengths", "4096,512,512"},
    {"kv-seq", "512"},
    {"batch", "3"},
    {"heads", "64"},
    {"kv-heads", "8"},
    {"head-dim", "64"},
    {"v-head-dim", "32"},
    {"sinks", "true"},
    {"latent", "true"},
    {"model", "llama3-8b"},
    {"mask", "full"},
    {"window", "4096"},
    {"keep-first", "4"},
    {"layer", "window"},
    {"dtype", "fp16"},
    {"wire-dtype", "fp8"},
    {"pass", "forward"},
    {"pad", "true"},
    {"schedule", "mesh"},
    {"kv-order", "direct"},
    {"grid", "4x2"},
    {"ulysses", "2"},
    {"tp", "4"},
    {"tokens", "striped"},
    {"placement", "rails"},
    {"kernel", "fa3"},
    {"reduction", "ring"},
    {"merges", "unfused"},
    {"launch-order", "compute-first"},
    {"partials", "fp32"},
    {"gradients", "fp32"},
    {"keys-sent", "latent"},
    {"levels", "keys-ring:2 queries-gather:4"},
    {"parts", "2"},
    {"shares", "3,1,2"},
    {"schedule-file", "tests/ask/ring_schedule.yaml"},
    {"framework", "megatron"},
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
  EXPECT_ERROR(set(q, "by", "analitic"), input_error,
               "by: 'analitic': expected one of: simulation, analytic; did you mean analytic?");
  EXPECT_ERROR(set(q, "framework", "jax"), input_error,
               "framework: 'jax': expected a file or one of: megatron, ring-flash-attention, "
               "torchtitan, usp, vllm");
  EXPECT_ERROR(set(q, "documents", "64K*9999999999"), input_error,
               "documents: '64K*9999999999': expected at most 65536 documents");
}

// What a message lists and a shell completes are one list.
TEST(fields, have_their_choices) {
  int with_choices = 0;
  for (const auto& f : fields()) {
    if (f.choices == nullptr) continue;
    ++with_choices;
    const auto choices = f.choices();
    ASSERT_FALSE(choices.empty()) << f.name;
    question q;
    if (!f.is_open) {
      EXPECT_ERROR(set(q, f, "?"), input_error,
                   fmt::format("{}: '?': expected one of: {}", f.name, fmt::join(choices, ", ")));
    }
    for (const auto& choice : choices) EXPECT_NO_THROW(set(q, f, choice)) << f.name;
  }
  EXPECT_EQ(with_choices, 20);
  EXPECT_THAT(find_field("pass")->choices(),
              testing::ElementsAre("forward", "backward", "both", "recompute"));
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

TEST(fields, a_key_may_be_a_misspelt_one) {
  question q;
  const std::string unknown =
      ": unknown key; expected a field of the question or a key of the cluster file";
  EXPECT_ERROR(set_key(q, "hedas", "32"), input_error, "hedas" + unknown + "; did you mean heads?");
  EXPECT_ERROR(set_key(q, "slow_device", "{}"), input_error,
               "slow_device" + unknown + "; did you mean slow_devices?");
  EXPECT_ERROR(set_key(q, "?", "32"), input_error, "?" + unknown);
  set_key(q, "slow_devices", "{}");
  EXPECT_EQ(q.overrides.set.back().first, "slow_devices");
}

TEST(question, takes_the_schedules_usual_tokens_and_placement) {
  const attention causal{}, full{.mask = mask_kind::full};
  question q;
  EXPECT_EQ(strategy_of(q, causal).tokens, token_layout::zigzag);
  EXPECT_EQ(strategy_of(q, full).tokens, token_layout::contiguous);
  q.schedule = "ulysses";
  EXPECT_EQ(strategy_of(q, causal).tokens, token_layout::contiguous);
  q.schedule = "hierarchical-allgather";
  EXPECT_EQ(strategy_of(q, causal).tokens, token_layout::zigzag);
  EXPECT_EQ(strategy_of(q, causal).placement, "column-in-node");
  q.placement = "rails";
  EXPECT_EQ(strategy_of(q, causal).placement, "rails");
}

TEST(question, asks_no_schedule_for_what_it_does_not_read) {
  question q{.schedule = "ring"};
  q.reduction = reduction_kind::ring;
  EXPECT_ERROR(strategy_of(q, attention{}), input_error,
               "reduction: 'ring': expected with a schedule that reads it: attention2d, composed");
  EXPECT_ERROR(plan_of(q, attention{}, 4, {"ring", "mesh"}), input_error,
               "reduction: 'ring': expected with a schedule that reads it: attention2d, composed");
  EXPECT_NO_THROW(plan_of(q, attention{}, 4, {"ring", "attention2d"}));
  EXPECT_NO_THROW(plan_of(q, attention{}, 4, {}));
  q.schedule = "attention2d-overlap";
  EXPECT_THROW(strategy_of(q, attention{}), input_error);
  q.reduction.reset();
  q.order = kv_order::transposed;
  EXPECT_EQ(strategy_of(q, attention{}).order, kv_order::transposed);
}

TEST(question, asks_no_schedule_for_numbers_that_it_does_not_send) {
  question q{.schedule = "ring", .partials = precision::fp32};
  EXPECT_ERROR(
      strategy_of(q, attention{}), input_error,
      "partials: 'fp32': expected with a schedule that reads it: attention2d, "
      "attention2d-overlap, mesh, startrail, tokenring, passq-ring, passq-allgather, helix, "
      "dcp, dcp-a2a, composed");
  EXPECT_NO_THROW(plan_of(q, attention{}, 4, {"ring", "mesh"}));
  const auto all_but_ulysses =
      ": expected with a schedule that reads it: ring, allgather, attention2d, "
      "attention2d-overlap, mesh, usp, ulysses-allgather, double-ring, startrail, burst, "
      "tokenring, "
      "hierarchical-allgather, passq-ring, passq-allgather";
  q = {.schedule = "ulysses", .gradients = precision::storage};
  EXPECT_ERROR(strategy_of(q, attention{}), input_error,
               std::string("gradients: 'storage'") + all_but_ulysses + ", halo, composed");
  q = {.schedule = "ulysses", .merges = merge_kind::unfused};
  EXPECT_ERROR(
      strategy_of(q, attention{}), input_error,
      std::string("merges: 'unfused'") + all_but_ulysses + ", helix, dcp, dcp-a2a, halo, composed");
  q.schedule = "ring";
  EXPECT_EQ(strategy_of(q, attention{}).merges, merge_kind::unfused);
}

TEST(question, runs_as_a_framework_does_where_nothing_else_is_given) {
  question q{.cluster = "dgx-h100", .framework = "torchtitan"};
  const auto titan = strategy_of(q, attention{});
  EXPECT_EQ(titan.merges, merge_kind::unfused);
  EXPECT_EQ(titan.gradients, precision::fp32);
  EXPECT_EQ(titan.copies, (framework_copies{.joined = framework_copies::joining::every}));
  EXPECT_EQ(cluster_of(q).host.name, "pytorch");
  q.merges = merge_kind::fused;
  EXPECT_EQ(strategy_of(q, attention{}).merges, merge_kind::fused);
  q = {.cluster = "dgx-h100", .framework = "vllm"};
  EXPECT_EQ(cluster_of(q).host.name, "");
  q.overrides.host = "pytorch";
  EXPECT_EQ(cluster_of(q).host.name, "pytorch");
  EXPECT_EQ(plan_of(q, attention{}, 4, {}).fixed.copies, (framework_copies{.gathered = true}));
}

/// What it merges or sends is no question of a schedule that does not.
TEST(question, a_framework_goes_with_every_schedule) {
  for (const auto& one : algorithms()) {
    const question q{.schedule = one.name, .framework = "torchtitan"};
    EXPECT_NO_THROW(strategy_of(q, attention{})) << one.name;
  }
}

TEST(question, warns_of_what_the_framework_cannot_run) {
  question q{.cluster = "dgx-h100",
             .ranks = 8,
             .sequence = 8192,
             .heads = 8,
             .mask = mask_kind::causal,
             .schedule = "mesh",
             .framework = "megatron"};
  EXPECT_THAT(predict(q, cluster_of(q)).warnings,
              testing::Contains("megatron has no mesh; offers ring (p2p), allgather, ulysses (a2a) "
                                "and usp (a2a+p2p)"));
  q.schedule = "allgather";
  q.framework = "torchtitan";
  q.tokens = token_layout::zigzag;
  EXPECT_THAT(predict(q, cluster_of(q)).warnings,
              testing::Not(testing::Contains(testing::StartsWith("torchtitan"))));
}

/// torchtitan's repeat_kv, before attention.
TEST(question, a_framework_may_repeat_keys) {
  question q{.sequence = 8192, .heads = 32, .kv_heads = 8, .framework = "torchtitan"};
  const auto a = layer_of(q);
  EXPECT_EQ(a.kv_heads, 32);
  EXPECT_THAT(a.notes, testing::ElementsAre("torchtitan repeats keys and values for every query "
                                            "head: 32 in place of 8"));
  q.framework = "megatron";
  EXPECT_EQ(layer_of(q).kv_heads, 8);
}

TEST(question, transposes_keys_of_striped_tokens_on_square_grids) {
  question q{.schedule = "attention2d"};
  const auto order = [&] { return strategy_of(q, attention{}).order; };
  EXPECT_EQ(order(), kv_order::direct);
  q.tokens = token_layout::striped;
  EXPECT_EQ(order(), kv_order::direct);  // on any number of ranks
  q.grid = {4, 2};
  EXPECT_EQ(order(), kv_order::direct);
  q.grid = {4, 4};
  EXPECT_EQ(order(), kv_order::transposed);
  q.schedule = "mesh";
  EXPECT_EQ(order(), kv_order::direct);
}

/// With the tokens that are usual under the mask.
seconds usual_time(const question& q, const cluster& c, mask_kind mask) {
  auto asked = q;
  asked.mask = mask;
  return predict(asked, c).time;
}

// A causal mask leaves half of the work; the usual tokens must not spend it on small kernel calls.
TEST(question, usual_tokens_make_a_causal_mask_no_slower_than_none) {
  for (const auto* name : {"dgx-h100", "nd-a100-v4"}) {
    question q{.cluster = name, .ranks = 8, .sequence = 32768, .kv_heads = 8};
    const auto c = cluster_of(q);
    for (const auto& one : algorithms()) {
      q.schedule = one.name;
      for (const auto pass : {pass_kind::forward, pass_kind::both}) {
        if (one.whole_queries && pass != pass_kind::forward) continue;
        if (one.for_windows) continue;  // which a full mask has not
        q.pass = pass;
        EXPECT_LT(usual_time(q, c, mask_kind::causal), usual_time(q, c, mask_kind::full))
            << name << " " << one.name << " " << name_of(pass);
      }
    }
  }
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

TEST(question, takes_mask_and_window_of_the_model_unless_given) {
  question q{.sequence = 4096, .model = "flux.1-dev"};
  EXPECT_EQ(problem_of(q, 1).mask, mask_kind::full);
  EXPECT_EQ(strategy_of(q, layer_of(q)).tokens, token_layout::contiguous);
  q.mask = mask_kind::causal;
  EXPECT_EQ(problem_of(q, 1).mask, mask_kind::causal);
  q = {.sequence = 4096, .model = "gpt-oss-20b"};
  EXPECT_EQ(problem_of(q, 1).window, 0);
  q.layer = layer_kind::window;
  EXPECT_EQ(problem_of(q, 1).window, 128);
  q.window = 0;
  EXPECT_EQ(problem_of(q, 1).window, 0);
  q = {.sequence = 4096, .model = "mistral-7b-v0.1", .mask = mask_kind::full};
  EXPECT_EQ(problem_of(q, 1).window, 0);
  q = {.sequence = 4096, .layer = layer_kind::window};
  EXPECT_ERROR(problem_of(q, 1), input_error,
               "layer: 'window': expected a model that has such layers");
}

TEST(question, reads_head_dimensions_of_keys_and_values_at_once) {
  question q{.sequence = 4096};
  set(q, "head-dim", "192/128");
  EXPECT_EQ(problem_of(q, 1).head_dim, 192);
  EXPECT_EQ(problem_of(q, 1).v_head_dim, 128);
  EXPECT_ERROR(set(q, "head-dim", "192/"), input_error,
               "head-dim: '192/': expected a whole number of at least 1, such as 8, 128K or 1M");
}

TEST(question, takes_head_dimensions_and_sinks_of_the_model_unless_given) {
  question q{.sequence = 4096, .model = "deepseek-v3"};
  EXPECT_EQ(problem_of(q, 1).head_dim, 192);
  EXPECT_EQ(problem_of(q, 1).v_head_dim, 128);
  q.latent = true;
  EXPECT_EQ(problem_of(q, 1).kv_heads, 1);
  EXPECT_EQ(problem_of(q, 1).head_dim, 576);
  EXPECT_EQ(problem_of(q, 1).v_head_dim, 512);
  EXPECT_TRUE(problem_of(q, 1).latent);
  q = {.sequence = 4096, .head_dim = 64, .model = "deepseek-v3"};
  EXPECT_EQ(problem_of(q, 1).value_dim(), 64);
  q.v_head_dim = 32;
  EXPECT_EQ(problem_of(q, 1).value_dim(), 32);
  q.v_head_dim = 64;
  EXPECT_EQ(problem_of(q, 1).v_head_dim, 0);  // as without
  q = {.sequence = 4096, .model = "gpt-oss-20b"};
  EXPECT_TRUE(problem_of(q, 1).sinks);
  q.sinks = false;
  EXPECT_FALSE(problem_of(q, 1).sinks);
}

TEST(question, lays_packed_documents_out_zigzag_each) {
  question q{.sequence = 8, .documents = {4, 4}};
  for (const auto* schedule : {"ring", "usp", "allgather"}) {
    q.schedule = schedule;
    EXPECT_EQ(strategy_of(q, layer_of(q)).tokens, token_layout::zigzag) << schedule;
  }
  q.schedule = "ulysses";
  EXPECT_EQ(strategy_of(q, layer_of(q)).tokens, token_layout::contiguous);
}

TEST(question, pads_each_document) {
  question q{.sequence = 60001, .documents = {40001, 20000}, .pad = true};
  const auto a = problem_of(q, 16);
  EXPECT_EQ(a.documents, (std::vector<std::int64_t>{40016, 20000}));
  EXPECT_EQ(a.sequence, 60016);
  EXPECT_EQ(a.padding, 0);
  EXPECT_EQ(a.notes, (std::vector<std::string>{"documents padded to multiples of 16: 15 of 60016 "
                                               "tokens are padding and computed like others"}));
  q.sequence = 60000;
  EXPECT_ERROR(problem_of(q, 16), input_error,
               "documents: '60001': expected lengths that add up to the sequence's 60000");
}

TEST(question, has_a_request_for_each_cache_length) {
  question q{.sequence = 1};
  set(q, "cache-lengths", "64K,4K*2");
  const auto a = problem_of(q, 1);
  EXPECT_EQ(a.batch, 3);
  EXPECT_EQ(a.prefix, 65536);
  EXPECT_EQ(a.prefixes, (std::vector<std::int64_t>{65536, 4096, 4096}));
  EXPECT_EQ(a.notes.back(),
            "requests of several lengths: memory is counted as if all were as long as the longest; "
            "a paged cache has 37.5 % of these tokens");
  q.batch = 2;
  EXPECT_ERROR(problem_of(q, 1), input_error,
               "cache-lengths: '3': expected one for each of 2 sequences");
  q.batch = 1;
  q.prefix = 4096;
  EXPECT_ERROR(problem_of(q, 1), input_error, "cache-lengths: '65536': expected a longest of 4096");
}

TEST(question, requests_of_one_length_are_a_batch) {
  question q{.sequence = 1};
  set(q, "cache-lengths", "4K*8");
  const auto a = problem_of(q, 1);
  EXPECT_EQ(a.batch, 8);
  EXPECT_EQ(a.prefix, 4096);
  EXPECT_TRUE(a.prefixes.empty());
}

TEST(question, means_the_same_without_what_changes_nothing) {
  question q;
  q.sequence = 1000;
  q.documents = {1000};
  q.window = 1000;
  auto a = problem_of(q, 1);
  EXPECT_TRUE(a.documents.empty());
  EXPECT_EQ(a.window, 0);
  q.window = 999;
  EXPECT_EQ(problem_of(q, 1).window, 999);
  q.documents = {400, 600};
  a = problem_of(q, 1);
  EXPECT_EQ(a.documents, q.documents);
  EXPECT_EQ(a.window, 0);  // the longest has 600
  q.window = 599;
  EXPECT_EQ(problem_of(q, 1).window, 599);
  q.mask = mask_kind::full;
  q.window = 1000;
  EXPECT_ERROR(problem_of(q, 1), input_error,
               "window: '1000': expected a causal mask with a sliding window");
  q.window.reset();
  q.documents = {999};
  EXPECT_ERROR(problem_of(q, 1), input_error,
               "documents: '999': expected lengths that add up to the sequence's 1000");
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

TEST(written, has_the_given_fields_in_the_tables_order) {
  question q;
  set(q, "grid", "2x1");
  set(q, "seq", "4K");
  set(q, "pad", "true");
  EXPECT_EQ(written(q), "seq=4096 pad=true grid=2x1");
  EXPECT_EQ(written(q, {"grid", "pad"}), "seq=4096");
}

}  // namespace question_test
}  // namespace attnsim::ask
