#include "model/attention/heads.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnsim {
namespace {

struct run {
  std::int64_t first, count;
};

/// `place` of `parts` nearly equal runs of `count`, the first ones longer by one.
run part_of(std::int64_t count, std::int64_t parts, std::int64_t place) {
  const auto each = count / parts, longer = count % parts;
  return {place * each + std::min(place, longer), each + (place < longer ? 1 : 0)};
}

}  // namespace

head_range all_heads(const attention& a) {
  return {0, a.heads, 0, a.kv_heads};
}

head_range share_of(const head_range& all, std::int64_t parts, std::int64_t place) {
  const auto group = all.queries / all.keys;
  if (parts <= all.keys) {
    const auto keys = part_of(all.keys, parts, place);
    return {all.first_query + keys.first * group, keys.count * group, all.first_key + keys.first,
            keys.count};
  }
  const auto copies = parts / all.keys;
  const auto key = place / copies;
  const auto queries = part_of(group, copies, place % copies);
  return {all.first_query + key * group + queries.first, queries.count, all.first_key + key, 1};
}

head_range query_share_of(const head_range& all, std::int64_t parts, std::int64_t place) {
  auto share = all;
  share.queries /= parts;
  share.first_query += place * share.queries;
  return share;
}

bool can_share(const head_range& all, std::int64_t parts) {
  return parts <= all.keys || (parts % all.keys == 0 && parts <= all.queries);
}

bool shares_evenly(const head_range& all, std::int64_t parts) {
  return can_share(all, parts) && all.queries % parts == 0 &&
         (parts > all.keys || all.keys % parts == 0);
}

std::string even_degrees(const head_range& all, std::int64_t most) {
  std::string list;
  for (std::int64_t parts = 1; parts <= most; ++parts) {
    if (shares_evenly(all, parts)) list += fmt::format("{}{}", list.empty() ? "" : ", ", parts);
  }
  return list;
}

}  // namespace attnsim
