#include "model/attention/document_kinds.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace attnsim {
namespace document_kinds_test {

/// A tile without its place: how many there are of each shape and mask.
using shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool, bool, bool>;
using shapes = std::map<shape, std::int64_t>;

shapes shapes_of(const std::vector<token_document>& documents, const token_set& queries,
                 const token_set& keys, const attention& a) {
  shapes found;
  for (const auto& t : kernel_tiles(queries, keys, a, false, documents))
    found[{t.rows, t.cols, t.pairs(), t.mask.causal, t.adds_rows, t.adds_cols}] += t.times;
  return found;
}

/// By looking at each query and each key.
std::int64_t pairs_by_hand(const token_set& queries, const token_set& keys, const attention& a) {
  const auto bounds = document_bounds(a);
  const auto document_of = [&](std::int64_t token) {
    return std::upper_bound(bounds.begin(), bounds.end(), token) - bounds.begin();
  };
  std::int64_t pairs = 0;
  for (const auto& q : queries) {
    for (const auto& k : keys) {
      for (auto i = q.first; i < q.first + q.count * q.stride; i += q.stride) {
        for (auto j = k.first; j < k.first + k.count * k.stride; j += k.stride) {
          const bool masked =
              a.mask == mask_kind::causal && (j > i || (a.window > 0 && j <= i - a.window));
          pairs += i < bounds.back() && document_of(i) == document_of(j) && !masked;
        }
      }
    }
  }
  return pairs;
}

/// Few lengths, so that many are alike.
std::vector<std::int64_t> random_documents(std::mt19937& random, std::int64_t tokens) {
  std::vector<std::int64_t> lengths;
  while (tokens > 0) {
    const std::int64_t length =
        std::min(tokens, static_cast<std::int64_t>(1 + random() % 3 * (random() % 5)));
    lengths.push_back(length);
    tokens -= length;
  }
  return lengths;
}

TEST(document_kinds, have_the_tiles_of_all_documents) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::int64_t counted = 0, all = 0;
  for (int round = 0; round < 1000; ++round) {
    const int chunks = 1 + pick(6);
    const std::int64_t sequence = 2 * chunks * (1 + pick(10));
    const auto layout = static_cast<token_layout>(pick(4));
    attention a{.heads = 1, .kv_heads = 1, .sequence = sequence};
    a.mask = static_cast<mask_kind>(pick(2));
    a.padding = pick(2) * pick(static_cast<int>(sequence));
    a.window = a.mask == mask_kind::causal ? pick(2) * pick(8) : 0;
    a.documents = random_documents(random, sequence - a.padding);
    const auto block = [&] {
      token_set set;
      for (int i = 0, first = pick(chunks), n = 1 + pick(chunks); i < n; ++i) {
        for (const auto& r : tokens_of(layout, sequence, chunks, (first + i) % chunks))
          set.push_back(r);
      }
      return pick(2) ? ascending(set) : pick(3) ? set : slice(set, pick(4), 3);
    };
    const auto queries = block(), keys = block();
    const document_kinds kinds(document_bounds(a), chunks);
    const auto each = shared_documents(queries, keys, document_bounds(a));
    const auto alike = kinds.shared(queries, keys);
    const auto expected = shapes_of(each, queries, keys, a);
    EXPECT_EQ(shapes_of(alike, queries, keys, a), expected) << "round " << round;
    std::int64_t pairs = 0;
    for (const auto& [s, times] : expected) pairs += std::get<2>(s) * times;
    EXPECT_EQ(pairs, pairs_by_hand(queries, keys, a)) << "round " << round;
    EXPECT_EQ(visible_pairs(queries, keys, a), pairs) << "round " << round;
    counted += static_cast<std::int64_t>(alike.size());
    all += static_cast<std::int64_t>(each.size());
  }
  EXPECT_LT(counted, all * 9 / 10);  // else nothing was counted
}

// 16 tokens begin at 0, 16, 32 or 48 of a period of 64; in consecutive tokens a chunk of 16,384 holds 1,024 documents, and
// no other has tokens of them.
TEST(document_kinds, are_few) {
  attention a{.heads = 1, .kv_heads = 1, .sequence = 1 << 20};
  a.documents.assign(1 << 16, 16);
  const document_kinds kinds(document_bounds(a), 64);
  const auto chunk = [&](token_layout layout, int i) {
    return tokens_of(layout, a.sequence, 64, i);
  };
  const auto striped =
      kinds.shared(chunk(token_layout::striped, 3), chunk(token_layout::striped, 5));
  ASSERT_EQ(striped.size(), 4u);
  for (const auto& kind : striped) EXPECT_EQ(kind.times, 1 << 14);
  const auto own = chunk(token_layout::contiguous, 3);
  EXPECT_EQ(kinds.shared(own, own).size(), 1024u);
  EXPECT_TRUE(kinds.shared(own, chunk(token_layout::contiguous, 4)).empty());
}

}  // namespace document_kinds_test
}  // namespace attnsim
