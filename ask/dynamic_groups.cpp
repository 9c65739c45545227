#include "ask/dynamic_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "sim/parallel.hpp"

namespace attnsim::ask {
namespace {

using lengths_list = std::vector<std::int64_t>;

/// The smallest power of two of ranks that has room for the document.
int ranks_for(std::int64_t length, std::int64_t rank_tokens) {
  int ranks = 1;
  while (ranks * rank_tokens < length) ranks *= 2;
  return ranks;
}

struct bin {
  lengths_list documents;
  std::int64_t room;
  double work = 0;

  void add(std::int64_t length) {
    documents.push_back(length);
    room -= length;
    work += static_cast<double>(length) * static_cast<double>(length);
  }
};

/// Empty where so many bins have no room for all. `lengths`: longest first.
std::vector<bin> filled(const lengths_list& lengths, std::size_t count, std::int64_t room) {
  std::vector<bin> bins(count, bin{{}, room});
  for (const auto length : lengths) {
    bin* least = nullptr;
    for (auto& one : bins) {
      if (one.room >= length && (!least || one.work < least->work)) least = &one;
    }
    if (!least) return {};
    least->add(length);
  }
  return bins;
}

std::vector<document_group> packed(const lengths_list& lengths, int ranks,
                                   std::int64_t rank_tokens) {
  const auto room = ranks * rank_tokens;
  const auto tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{});
  auto count = static_cast<std::size_t>((tokens + room - 1) / room);
  auto bins = filled(lengths, count, room);
  while (bins.empty() && !lengths.empty()) bins = filled(lengths, ++count, room);
  std::vector<document_group> groups;
  for (auto& one : bins) groups.push_back({ranks, std::move(one.documents), {}});
  return groups;
}

/// Documents padded as their layout needs, on a ring (or what is asked for) of the group's ranks.
seconds time_of(const document_group& group, question q, const cluster& c) {
  const std::int64_t unit = 2 * group.ranks;
  q.documents = group.documents;
  for (auto& length : q.documents) length = (length + unit - 1) / unit * unit;
  q.sequence = std::accumulate(q.documents.begin(), q.documents.end(), std::int64_t{});
  q.ranks = group.ranks;
  q.grid.reset();
  q.by = prediction_method::analytic;
  return predict(q, c).time;
}

/// Slowest first, into the first that has enough ranks left.
batch_plan scheduled(std::vector<document_group> groups, int ranks) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& x, const auto& y) { return x.time > y.time; });
  batch_plan plan;
  std::vector<int> left;
  for (auto& group : groups) {
    const auto found = std::find_if(left.begin(), left.end(),
                                    [&](int ranks_left) { return ranks_left >= group.ranks; });
    const auto place = static_cast<std::size_t>(found - left.begin());
    if (found == left.end()) {
      left.push_back(ranks);
      plan.micro_batches.emplace_back();
    }
    left[place] -= group.ranks;
    plan.micro_batches[place].push_back(std::move(group));
  }
  return plan;
}

void require_room(std::int64_t longest, std::int64_t rank_tokens, int ranks) {
  if (rank_tokens < 2)
    throw input_error(asked("rank-tokens"), std::to_string(rank_tokens),
                      "expected a whole number of at least 2");
  if (ranks_for(longest, rank_tokens) <= ranks) return;
  throw infeasible(
      asked("rank-tokens"), std::to_string(rank_tokens),
      fmt::format("the longest document has {} tokens and needs {} ranks, there are {}; "
                  "feasible: {} and more",
                  longest, ranks_for(longest, rank_tokens), ranks, (longest + ranks - 1) / ranks));
}

}  // namespace

seconds batch_plan::time() const {
  seconds all;
  for (const auto& batch : micro_batches) all += batch.front().time;
  return all;
}

double batch_plan::busy(int ranks) const {
  double busy = 0;
  for (const auto& batch : micro_batches) {
    for (const auto& group : batch) busy += group.ranks * group.time.value();
  }
  return busy / (ranks * time().value());
}

grouped_batch group_documents(const question& q, const cluster& c,
                              std::vector<std::int64_t> lengths, std::int64_t rank_tokens) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  int ranks = 1;
  while (2 * ranks <= ranks_of(q, c)) ranks *= 2;
  require_room(lengths.front(), rank_tokens, ranks);
  grouped_batch result{.ranks = ranks,
                       .rank_tokens = rank_tokens,
                       .documents = std::ssize(lengths),
                       .tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{}),
                       .fixed_ranks = ranks_for(lengths.front(), rank_tokens)};
  std::map<int, lengths_list> by_ranks;
  for (const auto length : lengths) by_ranks[ranks_for(length, rank_tokens)].push_back(length);
  auto fixed = packed(lengths, result.fixed_ranks, rank_tokens);
  std::vector<document_group> dynamic;
  for (const auto& [needed, some] : by_ranks) {
    for (auto& group : packed(some, needed, rank_tokens)) dynamic.push_back(std::move(group));
  }
  for (auto* groups : {&fixed, &dynamic}) {
    parallel_for_each(*groups, [&](document_group& group) { group.time = time_of(group, q, c); });
  }
  result.fixed = scheduled(std::move(fixed), ranks);
  result.dynamic = scheduled(std::move(dynamic), ranks);
  return result;
}

std::string megatron_settings(const grouped_batch& batch) {
  if (batch.dynamic.time() >= batch.fixed.time()) {
    return fmt::format(
        "--context-parallel-size {}\n--sequence-packing-scheduler dp_balanced\n"
        "--max-seqlen-per-dp-cp-rank {}\n",
        batch.fixed_ranks, batch.rank_tokens);
  }
  return fmt::format(
      "--dynamic-context-parallel\n--sequence-packing-scheduler default_dynamic_cp\n"
      "--max-seqlen-per-dp-cp-rank {}\n",
      batch.rank_tokens);
}

}  // namespace attnsim::ask
