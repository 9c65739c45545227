// Heads shared out over ranks: by tensor parallelism for the whole layer, by Ulysses' all-to-alls for attention alone.
#pragma once

#include <cstdint>
#include <string>

#include "model/attention/attention.hpp"

namespace attnsim {

/// Query heads and the key heads that they attend to, both consecutive.
struct head_range {
  std::int64_t first_query = 0, queries = 0;
  std::int64_t first_key = 0, keys = 0;

  friend bool operator==(const head_range&, const head_range&) = default;
};

head_range all_heads(const attention&);

/// What place `place` of `parts` gets. Up to as many parts as key heads share those out, each with its group of query
/// heads; more parts, a multiple, have one key head each, which several hold a copy of, and share out its group. Shares
/// differ by one at most, the first are the largest. Precondition: can_share.
head_range share_of(const head_range&, std::int64_t parts, std::int64_t place);

/// The same of the query heads alone, of all key heads. Precondition: as many a part.
head_range query_share_of(const head_range&, std::int64_t parts, std::int64_t place);

/// Every part gets a head.
bool can_share(const head_range&, std::int64_t parts);

/// Every part gets as many heads.
bool shares_evenly(const head_range&, std::int64_t parts);

/// The numbers of parts up to `most` that share evenly, as text: "1, 2, 4".
std::string even_degrees(const head_range&, std::int64_t most);

}  // namespace attnsim
