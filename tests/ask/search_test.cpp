#include "ask/search.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "ask/search_log.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim {
namespace search_test {

using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

/// Two leaves of two nodes of two devices, 4 to 1 oversubscribed.
cluster tree(const std::string& more = "") {
  return read_cluster(config_node::parse_text(R"(
name: tree
device: h100-sxm5
nodes: 4
devices_per_node: 2
node: {links: nvswitch, bandwidth: 450 GB/s, latency: 1 us}
nics: {per_node: 2, bandwidth: 200 Gb/s, latency: 1 us, attach: one-per-device}
fabric: {kind: fat-tree, nodes_per_leaf: 2, oversubscription: 4, latency: 1 us}
)" + more,
                                              "tree"));
}

search_request request(int evaluations = 150) {
  return {.planned = {.problem = {.heads = 16, .kv_heads = 16, .sequence = 65536},
                      .ranks = 8,
                      .pass = pass_kind::forward,
                      .schedules = {"ring", "ulysses", "attention2d"}},
          .evaluations = static_cast<std::size_t>(evaluations)};
}

TEST(search, beats_the_published_and_not_the_limit) {
  const auto r = search_schedules(tree(), request());
  EXPECT_THAT(r.found.time.value(), Lt(r.published.front().time.value()));
  EXPECT_THAT(r.found.time.value(), Ge(r.found.limit.time.value()));
}

TEST(search, gives_slow_devices_fewer_tokens) {
  auto asked = request();
  asked.planned.problem.sequence = 524288;  // so that devices bound it, not links
  const auto r = search_schedules(tree("slow_devices: {2: 0.5, 3: 0.5}"), asked);
  EXPECT_FALSE(r.found.chosen.shares.empty());
  EXPECT_THAT(r.found.time.value(), Lt(0.8 * r.published.front().time.value()));
}

TEST(search, finds_the_same_with_the_same_seed) {
  const auto c = tree();
  EXPECT_EQ(key_of(search_schedules(c, request(100)).found.chosen),
            key_of(search_schedules(c, request(100)).found.chosen));
}

TEST(search, goes_on_where_it_was_stopped) {
  const auto c = tree();
  const temporary_folder folder;
  auto logged = request(100);
  const auto whole = search_schedules(c, logged);
  logged.log = folder.file("search.log");
  logged.evaluations = 60;  // and then killed
  search_schedules(c, logged);
  std::ofstream(logged.log, std::ios::app) << "1e-3\tring 8x1 cut o";
  logged.evaluations = 100;
  const auto resumed = search_schedules(c, logged);
  EXPECT_EQ(resumed.found.time, whole.found.time);
  EXPECT_EQ(key_of(resumed.found.chosen), key_of(whole.found.chosen));
}

TEST(search, refuses_another_searchs_log) {
  const temporary_folder folder;
  auto logged = request(10);
  logged.log = folder.file("search.log");
  std::ofstream(logged.log) << "search of another\n";
  EXPECT_THAT([&] { search_schedules(tree(), logged); },
              ::testing::ThrowsMessage<input_error>(
                  HasSubstr("search.log:1: 'search of another': expected 'search tree 8 ranks")));
}

}  // namespace search_test
}  // namespace attnsim
