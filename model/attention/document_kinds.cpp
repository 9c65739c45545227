#include "model/attention/document_kinds.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace attnsim {

document_kinds::document_kinds(std::vector<std::int64_t> bounds, std::int64_t period)
    : bounds_(std::move(bounds)), period_(period) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> known;
  for (std::size_t d = 0; d + 1 < bounds_.size(); ++d) {
    const auto begin = bounds_[d], end = bounds_[d + 1];
    const auto [kind, is_new] = known.try_emplace({begin % period, end - begin}, kinds_.size());
    if (is_new) {
      kinds_.push_back({begin, end});
    } else {
      ++kinds_[kind->second].times;
    }
  }
}

bool document_kinds::goes_through(const token_set& set) const {
  return std::all_of(set.begin(), set.end(), [&](const token_range& r) {
    return r.first < r.stride && r.first + r.count * r.stride >= bounds_.back() &&
           period_ % r.stride == 0;
  });
}

std::vector<token_document> document_kinds::shared(const token_set& queries,
                                                   const token_set& keys) const {
  return goes_through(queries) && goes_through(keys) ? kinds_
                                                     : shared_documents(queries, keys, bounds_);
}

/// Two of an only length: the parts of a single gathered document would lie side by side and be one tile.
document_lengths lengths_of(const attention& a) {
  std::map<std::int64_t, std::int64_t> times;
  for (const auto length : a.documents) ++times[length];
  document_lengths found{.one_of_each = a, .documents = {}};
  auto& one = found.one_of_each;
  one.documents.clear();
  one.sequence = a.padding;
  const auto add = [&](std::int64_t length, std::int64_t count) {
    const auto begin = one.sequence - a.padding;
    found.documents.push_back({begin, begin + length, count});
    one.documents.push_back(length);
    one.sequence += length;
  };
  for (const auto& [length, count] : times) {
    const bool alone = times.size() == 1 && count > 1;
    if (alone) add(length, 1);
    add(length, count - alone);
  }
  return found;
}

}  // namespace attnsim
