#include "model/attention/attention.hpp"

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace attention_test {

constexpr attention layer{.heads = 32, .kv_heads = 8, .sequence = 131072};

void expect_refused(const attention& a, const std::string& message) {
  EXPECT_FALSE(is_countable(a));
  EXPECT_ERROR(check(a), input_error, message);
}

// 2^55 bytes are 2^53 fp32 numbers: with 2^17 tokens and 2^7 elements a head 2^29 heads of all batches.
TEST(attention, is_countable_in_64_bits) {
  const std::string because = ": bytes and pairs of tokens are counted in 64 bits";
  auto a = layer;
  a.heads = a.kv_heads = std::int64_t{1} << 29;
  EXPECT_TRUE(is_countable(a));
  EXPECT_NO_THROW(check(a));
  a.heads = a.kv_heads = std::int64_t{1} << 32;
  expect_refused(a, "heads: '4294967296': expected at most 536870912 here" + because);
  a = layer;
  a.batch = std::int64_t{1} << 25;
  expect_refused(a, "batch: '33554432': expected at most 16777216 here" + because);
  a = layer;
  a.head_dim = std::int64_t{1} << 37;
  expect_refused(a, "head-dim: '137438953472': expected at most 68719476736 here" + because);
  a = layer;
  a.sequence = std::int64_t{1} << 32;
  expect_refused(a, "seq: '4294967296': expected at most 2147483648 here" + because);
}

TEST(attention, has_sizes_of_at_least_one) {
  auto a = layer;
  a.heads = 0;
  EXPECT_ERROR(check(a), input_error, "heads: '0': expected a whole number of at least 1");
  a = layer;
  a.padding = a.sequence;
  EXPECT_ERROR(check(a), input_error, "seq: '0': expected a whole number of at least 1");
}

TEST(attention, has_key_heads_that_divide_its_heads) {
  auto a = layer;
  a.kv_heads = 5;
  EXPECT_ERROR(check(a), infeasible,
               "kv-heads: '5': does not divide 32 heads; feasible: 1, 2, 4, 8, 16, 32");
}

TEST(attention, of_other_keys_than_its_own_says_what_it_needs) {
  auto a = layer;
  a.prefix = -1;
  EXPECT_ERROR(check(a), input_error, "prefix: '-1': expected a whole number of at least 0");
  a.prefix = std::int64_t{1} << 31;
  expect_refused(a,
                 "prefix: '2147483648': expected at most 2147352576 here: bytes and pairs of "
                 "tokens are counted in 64 bits");
  a.prefix = 8;
  EXPECT_NO_THROW(check(a));
  a.kv_sequence = 8;
  EXPECT_ERROR(check(a), input_error,
               "kv-seq: '8': expected a full mask with keys of another sequence");
  a.mask = mask_kind::full;
  EXPECT_ERROR(check(a), input_error,
               "kv-seq: '8': expected no cached prefix with keys of another sequence");
  a.prefix = 0;
  EXPECT_NO_THROW(check(a));
  attention packed{.heads = 1, .kv_heads = 1, .sequence = 8, .prefix = 8, .documents = {4, 4}};
  EXPECT_ERROR(check(packed), input_error,
               "prefix: '8': expected a sequence without packed documents");
}

TEST(attention, of_values_in_keys_says_what_it_needs) {
  attention a{
      .heads = 8, .kv_heads = 2, .head_dim = 576, .v_head_dim = 512, .sequence = 8, .latent = true};
  EXPECT_ERROR(check(a), input_error, "kv-heads: '2': expected 1 with latent");
  a.kv_heads = 1;
  EXPECT_NO_THROW(check(a));
  EXPECT_NO_THROW(check(a, pass_kind::forward));
  EXPECT_ERROR(check(a, pass_kind::both), input_error,
               "pass: 'both': expected forward with latent: projections are absorbed to decode");
  a.v_head_dim = 577;
  EXPECT_ERROR(check(a), input_error,
               "v-head-dim: '577': expected at most head-dim 576 with latent");
  a.v_head_dim = -1;
  EXPECT_ERROR(check(a), input_error, "v-head-dim: '-1': expected a whole number of at least 1");
}

TEST(attention, of_a_prefix_has_no_backward_pass) {
  auto a = layer;
  EXPECT_NO_THROW(check(a, pass_kind::both));
  a.prefix = 8;
  EXPECT_NO_THROW(check(a, pass_kind::forward));
  EXPECT_ERROR(check(a, pass_kind::both), input_error,
               "pass: 'both': expected forward: the tokens of a cached prefix have no gradients");
}

}  // namespace attention_test
}  // namespace attnsim
