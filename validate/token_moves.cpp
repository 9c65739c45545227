#include "validate/token_moves.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace attnsim::validate {
namespace {

struct pair_of_places {
  std::int64_t token, from, to;
};

std::vector<std::int64_t> listed(const token_set& set) {
  std::vector<std::int64_t> tokens;
  for (const auto& r : set) {
    for (std::int64_t i = 0; i < r.count; ++i) tokens.push_back(r.first + i * r.stride);
  }
  return tokens;
}

/// In order of `to`.
std::vector<pair_of_places> pairs(const token_set& from, const token_set& to) {
  std::vector<std::pair<std::int64_t, std::int64_t>> place;  // token, place; by token
  for (const auto token : listed(from)) place.emplace_back(token, place.size());
  std::sort(place.begin(), place.end());
  std::vector<pair_of_places> result;
  for (const auto token : listed(to)) {
    const auto found =
        std::lower_bound(place.begin(), place.end(), std::pair{token, std::int64_t{0}});
    if (found == place.end() || found->first != token) {
      throw std::logic_error("moves token " + std::to_string(token) +
                             ", which is not in the source");
    }
    result.push_back({token, found->second, static_cast<std::int64_t>(result.size())});
  }
  return result;
}

/// Neighbours in the list join a move as long as both steps stay the same.
std::vector<token_move> joined(const std::vector<pair_of_places>& list) {
  std::vector<token_move> moves;
  for (const auto& p : list) {
    if (!moves.empty()) {
      auto& last = moves.back();
      const auto from_step = p.from - (last.from_first + (last.count - 1) * last.from_step);
      const auto to_step = p.to - (last.to_first + (last.count - 1) * last.to_step);
      const bool continues = last.from_step == from_step && last.to_step == to_step;
      if (from_step > 0 && to_step > 0 && (last.count == 1 || continues)) {
        last.from_step = from_step;
        last.to_step = to_step;
        ++last.count;
        continue;
      }
    }
    moves.push_back({p.from, 1, p.to, 1, 1});
  }
  return moves;
}

}  // namespace

std::vector<token_move> token_moves(const token_set& from, const token_set& to) {
  if (from == to) return {{0, 1, 0, 1, size(from)}};
  auto list = pairs(from, to);
  auto along_target = joined(list);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  auto along_source = joined(list);
  return along_source.size() < along_target.size() ? along_source : along_target;
}

}  // namespace attnsim::validate
