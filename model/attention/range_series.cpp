#include "model/attention/range_series.hpp"

#include <algorithm>
#include <array>

namespace attnsim {
namespace {

constexpr std::size_t most_phases = 4;
constexpr std::size_t kept_repeats = 4;  ///< of those that see the same

/// How many ranges from the first on are those `phases` before them, each moved as far as the first such.
std::size_t repeating(std::size_t phases, const placed_ranges& all) {
  for (std::size_t i = phases; i < all.size(); ++i) {
    const auto &now = all[i], &before = all[i - phases];
    const auto &moved = all[phases + i % phases], &from = all[i % phases];
    const bool alike =
        now.tokens.count == before.tokens.count && now.tokens.stride == before.tokens.stride &&
        now.step == before.step &&
        now.tokens.first - before.tokens.first == moved.tokens.first - from.tokens.first &&
        now.offset - before.offset == all[phases].offset - all[0].offset;
    if (!alike) return i;
  }
  return all.size();
}

/// How many of first, first + move, ... are at most `token`.
std::int64_t terms_up_to(std::int64_t token, std::int64_t first, std::int64_t move,
                         std::int64_t terms) {
  if (move == 0) return first <= token ? terms : 0;
  if (move > 0) return token < first ? 0 : std::min(terms, (token - first) / move + 1);
  return first <= token ? terms : terms - std::min(terms, (first - token + (-move) - 1) / (-move));
}

/// How many ranges of the other side a range sees, or is seen by, wholly and at least partly.
struct sight {
  std::int64_t wholly = 0, partly = 0;

  friend bool operator==(const sight&, const sight&) = default;
};

/// Whether the other side is the same to a repeat as to another one, found by binary search: each range's sight goes one way along
/// the series.
template <typename Seen>
class repeats_alike {
 public:
  repeats_alike(const range_series& series, const Seen& seen) : series_(series), seen_(seen) {}

  /// The end of those that see what `first` sees, all of it wholly; the next one where it sees some in part.
  std::int64_t end(std::int64_t first) {
    auto low = first + 1, high = series_.repeats();
    if (!look_at(first)) return low;
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      sees_the_same(middle) ? low = middle + 1 : high = middle;
    }
    return low;
  }

 private:
  bool look_at(std::int64_t repeat) {
    bool all_wholly = true;
    for (std::size_t p = 0; p < series_.phases(); ++p) {
      first_[p] = seen_(series_.range(p, repeat));
      all_wholly = all_wholly && first_[p].wholly == first_[p].partly;
    }
    return all_wholly;
  }

  bool sees_the_same(std::int64_t repeat) const {
    for (std::size_t p = 0; p < series_.phases(); ++p) {
      if (!(seen_(series_.range(p, repeat)) == first_[p])) return false;
    }
    return true;
  }

  const range_series& series_;
  const Seen& seen_;
  std::array<sight, most_phases> first_;  ///< a series that repeats has no more
};

template <typename Seen>
folded_ranges fold(const range_series& series, const Seen& seen) {
  repeats_alike<Seen> alike(series, seen);
  constexpr auto kept = static_cast<std::int64_t>(kept_repeats);
  folded_ranges result;
  std::int64_t left_out = 0;
  const auto keep = [&](std::int64_t repeat) {
    for (std::size_t p = 0; p < series.phases(); ++p) {
      auto r = series.range(p, repeat);
      r.offset -= left_out * series.places();
      result.ranges.push_back(r);
    }
  };
  for (std::int64_t first = 0; first < series.repeats();) {
    const auto end = alike.end(first);
    const auto last_kept = std::min(end, first + kept - 1);
    for (auto i = first; i < last_kept; ++i) keep(i);
    const auto times = end - first - (kept - 1);
    if (times > 1) {
      const auto at = series.range(0, last_kept - 1).offset - left_out * series.places();
      result.folds.push_back({at, series.places(), times});
      left_out += times - 1;
    }
    if (last_kept < end) keep(end - 1);
    first = end;
  }
  for (auto r : series.rest()) {
    r.offset -= left_out * series.places();
    result.ranges.push_back(r);
  }
  return result;
}

}  // namespace

range_series::range_series(const placed_ranges& all) {
  for (std::size_t phases = 1; phases <= most_phases && phases * kept_repeats < all.size();
       ++phases) {
    const auto repeats = repeating(phases, all) / phases;
    if (2 * repeats * phases < all.size() || repeats <= kept_repeats) continue;
    first_.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(phases));
    rest_.assign(all.begin() + static_cast<std::ptrdiff_t>(repeats * phases), all.end());
    repeats_ = static_cast<std::int64_t>(repeats);
    places_ = all[phases].offset - all[0].offset;
    for (std::size_t p = 0; p < phases; ++p)
      moves_.push_back(all[phases + p].tokens.first - all[p].tokens.first);
    return;
  }
  rest_ = all;
}

placed_range range_series::range(std::size_t phase, std::int64_t repeat) const {
  auto r = first_[phase];
  r.tokens.first += repeat * moves_[phase];
  r.offset += repeat * places_;
  return r;
}

std::int64_t range_series::ending_by(std::int64_t token) const {
  std::int64_t all = std::count_if(rest_.begin(), rest_.end(),
                                   [&](const placed_range& r) { return last(r.tokens) <= token; });
  for (std::size_t p = 0; p < first_.size(); ++p)
    all += terms_up_to(token, last(first_[p].tokens), moves_[p], repeats_);
  return all;
}

std::int64_t range_series::beginning_by(std::int64_t token) const {
  std::int64_t all = std::count_if(rest_.begin(), rest_.end(),
                                   [&](const placed_range& r) { return r.tokens.first <= token; });
  for (std::size_t p = 0; p < first_.size(); ++p)
    all += terms_up_to(token, first_[p].tokens.first, moves_[p], repeats_);
  return all;
}

folded_ranges::unfolded folded_ranges::unfold(std::int64_t first, std::int64_t end) const {
  unfolded u;
  for (const auto& f : folds) {
    const auto fold_end = f.first + f.places;
    if (end <= f.first || first >= fold_end) continue;
    const bool within = first >= f.first - f.places && end <= fold_end;
    if (within && end - first < 2 * f.places) {
      u.times *= f.times;
    } else if (first < f.first && end >= fold_end) {
      u.more += (f.times - 1) * f.places;
    }
  }
  return u;
}

folded_ranges fold_queries(const range_series& queries, const range_series& keys, bool causal) {
  return fold(queries, [&](const placed_range& q) -> sight {
    if (!causal) return {};
    return {keys.ending_by(q.tokens.first), keys.beginning_by(last(q.tokens))};
  });
}

folded_ranges fold_keys(const range_series& keys, const range_series& queries, bool causal) {
  return fold(keys, [&](const placed_range& k) -> sight {
    if (!causal) return {};
    return {-queries.beginning_by(last(k.tokens) - 1), -queries.ending_by(k.tokens.first - 1)};
  });
}

}  // namespace attnsim
