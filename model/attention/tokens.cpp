#include "model/attention/tokens.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "model/attention/counted_tiles.hpp"
#include "model/error.hpp"
#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<token_layout, 4> layouts{{{token_layout::contiguous, "contiguous"},
                                               {token_layout::zigzag, "zigzag"},
                                               {token_layout::zigzag_stream, "zigzag-stream"},
                                               {token_layout::striped, "striped"}}};

/// Without the tokens at or after `end`, which are padding.
std::int64_t count_before(const token_range& r, std::int64_t end) {
  if (r.first >= end) return 0;
  return std::min(r.count, (end - 1 - r.first) / r.stride + 1);
}

/// The parts of joined ranges that lie in the documents, by document, in each as they lie in memory.
placed_ranges placed(const token_set& set, const std::vector<token_document>& documents) {
  placed_ranges result;
  std::int64_t offset = 0;
  for (const auto& r : joined(set)) {
    auto d = std::partition_point(documents.begin(), documents.end(),
                                  [&](const token_document& one) { return one.end <= r.first; });
    for (; d != documents.end() && d->begin <= last(r); ++d) {
      const auto before = count_before(r, d->begin), count = count_before(r, d->end) - before;
      if (count == 0) continue;
      result.push_back({{r.first + before * r.stride, count, r.stride},
                        offset + before,
                        static_cast<std::size_t>(d - documents.begin())});
    }
    offset += r.count;
  }
  const auto by_document = [](const placed_range& a, const placed_range& b) {
    return a.document < b.document;
  };
  if (!std::is_sorted(result.begin(), result.end(), by_document))
    std::stable_sort(result.begin(), result.end(), by_document);
  return result;
}

/// Keys of another sequence are one document with the queries, and end by themselves.
placed_ranges placed_of(const attention& a, token_side side, const token_set& set,
                        const std::vector<token_document>& documents) {
  if (a.kv_sequence == 0) return placed(set, documents);
  return placed(set, {{0, document_bounds(a, side).back()}});
}

/// Calls `both` with the queries and the keys of each document that has both.
template <typename Both>
void each_document(const placed_ranges& queries, const placed_ranges& keys, const Both& both) {
  const auto end_of = [](auto from, const placed_ranges& all) {
    return std::find_if(from, all.end(),
                        [&](const placed_range& r) { return r.document != from->document; });
  };
  const auto part = [](auto from, auto to) {
    return std::span<const placed_range>(&*from, static_cast<std::size_t>(to - from));
  };
  auto q = queries.begin();
  auto k = keys.begin();
  while (q != queries.end() && k != keys.end()) {
    const auto of_query = q->document, of_key = k->document;
    const auto q_end = end_of(q, queries), k_end = end_of(k, keys);
    if (of_query == of_key) both(part(q, q_end), part(k, k_end));
    if (of_query <= of_key) q = q_end;
    if (of_key <= of_query) k = k_end;
  }
}

/// [first, end) of documents, by their numbers.
using document_range = std::pair<std::size_t, std::size_t>;

/// Those between the first and the last token of each range: ascending, apart from each other.
std::vector<document_range> documents_of(const token_set& set,
                                         const std::vector<std::int64_t>& bounds) {
  const auto place_of = [&](std::int64_t token) {
    return static_cast<std::size_t>(std::upper_bound(bounds.begin() + 1, bounds.end(), token) -
                                    bounds.begin() - 1);
  };
  std::vector<document_range> all, apart;
  for (const auto& r : set)
    all.emplace_back(place_of(r.first), std::min(place_of(last(r)) + 1, bounds.size() - 1));
  std::sort(all.begin(), all.end());
  for (const auto& [first, end] : all) {
    if (!apart.empty() && first <= apart.back().second) {
      apart.back().second = std::max(apart.back().second, end);
    } else {
      apart.emplace_back(first, end);
    }
  }
  return apart;
}

/// The `parts` interleaved subsequences of a range.
std::vector<placed_range> split(const placed_range& r, std::int64_t parts) {
  std::vector<placed_range> result;
  for (std::int64_t i = 0; i < std::min(parts, r.tokens.count); ++i) {
    const auto count = (r.tokens.count - i + parts - 1) / parts;
    result.push_back({{r.tokens.first + i * r.tokens.stride, count, r.tokens.stride * parts},
                      r.offset + i * r.step,
                      r.document,
                      r.step * parts});
  }
  return result;
}

tile make_tile(const placed_range& q, const placed_range& k, const attention& a) {
  tile t{.row_first = q.offset,
         .rows = q.tokens.count,
         .row_step = q.step,
         .col_first = k.offset,
         .cols = k.tokens.count,
         .col_step = k.step};
  const bool window_cuts = a.window > 0 && k.tokens.first <= last(q.tokens) - a.window;
  if (a.mask == mask_kind::causal && (last(k.tokens) > q.tokens.first || window_cuts)) {
    t.mask = {true, q.tokens.first, q.tokens.stride, k.tokens.first, k.tokens.stride, a.window};
  }
  return t;
}

/// The range from its `first`-th token on.
placed_range from(const placed_range& r, std::int64_t first) {
  auto rest = r;
  rest.tokens.first += first * r.tokens.stride;
  rest.tokens.count -= first;
  rest.offset += first * r.step;
  return rest;
}

placed_range up_to(placed_range r, std::int64_t count) {
  r.tokens.count = count;
  return r;
}

/// Calls for keys after a prefix, of another stride than the queries: one with all keys that every query sees, and where few
/// are left, one with each of them.
bool append_few_calls(std::vector<tile>& tiles, const placed_range& q, const placed_range& k,
                      const attention& a) {
  if (a.prefix == 0 || a.window > 0) return false;
  const auto seen_by_all = count_before(k.tokens, q.tokens.first + 1);
  const auto seen = count_before(k.tokens, last(q.tokens) + 1);
  if (seen - seen_by_all >= std::min(q.tokens.count, k.tokens.stride)) return false;
  if (seen_by_all > 0) tiles.push_back(make_tile(q, up_to(k, seen_by_all), a));
  for (auto i = seen_by_all; i < seen; ++i) {
    const auto key = up_to(from(k, i), 1);
    const auto before = count_before(q.tokens, key.tokens.first);
    tiles.push_back(make_tile(from(q, before), key, a));
  }
  return true;
}

/// Only the rows and columns of a window that may see or be seen.
void trim_to_window(placed_range& q, placed_range& k, std::int64_t window) {
  if (window == 0) return;
  q = up_to(q, count_before(q.tokens, last(k.tokens) + window));
  q = from(q, count_before(q.tokens, k.tokens.first));
  if (q.tokens.count <= 0) return;
  k = up_to(k, count_before(k.tokens, last(q.tokens) + 1));
  k = from(k, count_before(k.tokens, q.tokens.first - window + 1));
}

/// Appends the calls for one pair of ranges.
void append_tiles(std::vector<tile>& tiles, placed_range q, placed_range k, const attention& a,
                  bool staircase) {
  trim_to_window(q, k, a.window);
  if (q.tokens.count <= 0 || k.tokens.count <= 0) return;
  const auto t = make_tile(q, k, a);
  if (t.mask.causal && (k.tokens.first > last(q.tokens) || t.pairs() == 0)) return;
  const auto query_stride = q.tokens.stride, key_stride = k.tokens.stride;
  if (!t.mask.causal || staircase || query_stride == key_stride) {
    tiles.push_back(t);
  } else if (append_few_calls(tiles, q, k, a)) {
    return;
  } else if (query_stride > key_stride && query_stride % key_stride == 0) {
    for (const auto& part : split(k, query_stride / key_stride))
      append_tiles(tiles, q, part, a, staircase);
  } else if (key_stride % query_stride == 0) {
    for (const auto& part : split(q, key_stride / query_stride))
      append_tiles(tiles, part, k, a, staircase);
  } else {
    for (const auto& part : split(k, k.tokens.count)) append_tiles(tiles, q, part, a, staircase);
  }
}

bool same_rows(const tile& a, const tile& b) {
  return a.row_first == b.row_first && a.rows == b.rows && a.row_step == b.row_step;
}

/// Appends a tile of a row of tiles; full tiles side by side become one.
void append_beside(std::vector<tile>& row, const tile& t) {
  const bool extends = !row.empty() && !t.mask.causal && !row.back().mask.causal &&
                       same_rows(row.back(), t) && row.back().col_step == 1 && t.col_step == 1 &&
                       row.back().col_first + row.back().cols == t.col_first;
  if (extends) {
    row.back().cols += t.cols;
  } else {
    row.push_back(t);
  }
}

/// Columns of a full tile.
struct column_range {
  std::int64_t first = 0, count = 0, step = 1;

  friend auto operator<=>(const column_range&, const column_range&) = default;
};

column_range columns_of(const tile& t) {
  return {t.col_first, t.cols, t.col_step};
}

/// What ranges of queries see of the keys of a document: most see each range of keys wholly or not at all, and many see the same.
class seen_columns {
 public:
  using numbers = std::vector<std::size_t>;  ///< of columns, ascending by their first

  seen_columns(std::span<const placed_range> keys, const attention& a) : keys_(keys) {
    causal_ = a.mask == mask_kind::causal;
    if (a.window > 0) return;
    for (const auto& k : keys) {
      firsts_.push_back(k.tokens.first);
      lasts_.push_back(last(k.tokens));
    }
    std::sort(firsts_.begin(), firsts_.end());
    std::sort(lasts_.begin(), lasts_.end());
  }

  /// The number of the columns that a range sees, none where it sees some keys in part.
  std::optional<std::size_t> of(const placed_range& q) {
    if (firsts_.empty()) return {};
    const auto ranges_up_to = [&](const std::vector<std::int64_t>& ends, std::int64_t token) {
      return causal_ ? static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), token) -
                                                ends.begin())
                     : ends.size();
    };
    const auto wholly = ranges_up_to(lasts_, q.tokens.first);
    if (wholly != ranges_up_to(firsts_, last(q.tokens))) return {};
    const auto [known, is_new] = number_of_.try_emplace(wholly, lists_.size());
    if (is_new) lists_.push_back(numbers_of(q));
    return known->second;
  }

  const numbers& list(std::size_t number) const { return lists_[number]; }
  const column_range& columns(std::size_t number) const { return columns_[number]; }
  std::size_t size() const { return columns_.size(); }
  std::optional<std::size_t> find(const column_range& c) const {
    const auto known = column_number_.find(c);
    return known == column_number_.end() ? std::nullopt : std::optional(known->second);
  }

  /// Of columns that one list has and another has not.
  const numbers& missing(std::size_t from, std::size_t in) {
    const auto [known, is_new] = missing_.try_emplace({from, in});
    if (is_new) {
      std::set_difference(lists_[from].begin(), lists_[from].end(), lists_[in].begin(),
                          lists_[in].end(), std::back_inserter(known->second),
                          [&](auto a, auto b) { return columns_[a] < columns_[b]; });
    }
    return known->second;
  }

 private:
  /// Neighbouring ranges of keys are one.
  numbers numbers_of(const placed_range& q) {
    std::vector<column_range> seen;
    for (const auto& k : keys_) {
      if (causal_ && last(k.tokens) > q.tokens.first) continue;
      const bool continues = !seen.empty() && seen.back().step == 1 && k.step == 1 &&
                             seen.back().first + seen.back().count == k.offset;
      if (continues) {
        seen.back().count += k.tokens.count;
      } else {
        seen.push_back({k.offset, k.tokens.count, k.step});
      }
    }
    numbers list;
    for (const auto& c : seen) {
      const auto [known, is_new] = column_number_.try_emplace(c, columns_.size());
      if (is_new) columns_.push_back(c);
      list.push_back(known->second);
    }
    return list;
  }

  std::span<const placed_range> keys_;
  bool causal_;
  std::vector<std::int64_t> firsts_, lasts_;  ///< of the ranges of keys, ascending; empty: a window
  std::map<std::size_t, std::size_t> number_of_;  ///< list by how many ranges are seen
  std::vector<numbers> lists_;
  std::vector<column_range> columns_;
  std::map<column_range, std::size_t> column_number_;
  std::map<std::pair<std::size_t, std::size_t>, numbers> missing_;
};

/// Tiles row by row, where full tiles one below the other become one.
class tile_rows {
 public:
  explicit tile_rows(seen_columns& seen) : seen_(seen) {}

  void append(const std::vector<tile>& row) {
    end_open();
    std::vector<std::size_t> ends_here;
    auto above = above_.begin();
    for (const auto& t : row) {
      const bool joins = !t.mask.causal && t.row_step == 1;
      while (above != above_.end() && tiles_[*above].col_first < t.col_first) ++above;
      if (joins && above != above_.end() && is_below(t, tiles_[*above])) {
        tiles_[*above].rows += t.rows;
        ends_here.push_back(*above);
        continue;
      }
      if (joins) ends_here.push_back(tiles_.size());
      tiles_.push_back(t);
    }
    above_ = std::move(ends_here);
  }

  /// A range of queries that sees the columns of a list, and no others. Tiles that go on are not touched.
  void append(const placed_range& q, std::size_t list) {
    if (q.step != 1) {
      end_open();
      for (const auto c : seen_.list(list)) open(c, q);
      above_.clear();
      return;
    }
    if (!open_list_) {
      continue_above(q, list);
    } else if (rows_end_ != q.offset) {
      end_open();
      for (const auto c : seen_.list(list)) open(c, q);
    } else {
      for (const auto c : seen_.missing(*open_list_, list)) end(c);
      for (const auto c : seen_.missing(list, *open_list_)) open(c, q);
    }
    open_list_ = list;
    rows_end_ = q.offset + q.tokens.count;
  }

  std::vector<tile> take() && {
    end_open();
    return std::move(tiles_);
  }

 private:
  static bool is_below(const tile& t, const tile& above) {
    return above.row_first + above.rows == t.row_first && columns_of(above) == columns_of(t);
  }

  void open(std::size_t column, const placed_range& q) {
    const auto& c = seen_.columns(column);
    if (tile_of_.size() < seen_.size()) tile_of_.resize(seen_.size());
    tile_of_[column] = tiles_.size();
    tiles_.push_back({.row_first = q.offset,
                      .rows = q.tokens.count,
                      .row_step = q.step,
                      .col_first = c.first,
                      .cols = c.count,
                      .col_step = c.step});
  }

  void end(std::size_t column) {
    auto& t = tiles_[tile_of_[column]];
    t.rows = rows_end_ - t.row_first;
  }

  void end_open() {
    if (!open_list_) return;
    above_.clear();
    for (const auto c : seen_.list(*open_list_)) {
      end(c);
      above_.push_back(tile_of_[c]);
    }
    open_list_.reset();
  }

  /// After a row of other tiles.
  void continue_above(const placed_range& q, std::size_t list) {
    std::map<std::size_t, std::size_t> going_on;  // tile by number of its columns
    for (const auto above : above_) {
      const auto& t = tiles_[above];
      const auto column = seen_.find(columns_of(t));
      if (column && t.row_first + t.rows == q.offset) going_on.emplace(*column, above);
    }
    for (const auto c : seen_.list(list)) {
      const auto above = going_on.find(c);
      if (above == going_on.end()) {
        open(c, q);
      } else {
        if (tile_of_.size() < seen_.size()) tile_of_.resize(seen_.size());
        tile_of_[c] = above->second;
      }
    }
  }

  seen_columns& seen_;
  std::vector<tile> tiles_;
  std::vector<std::size_t> above_;  ///< the full ones of the latest row, by ascending columns
  std::optional<std::size_t>
      open_list_;  ///< the latest row's columns, whose tiles' rows are not counted up yet
  std::vector<std::size_t> tile_of_;  ///< by number of columns: the tile that is open
  std::int64_t rows_end_ = 0;         ///< of open tiles
};

bool is_ascending(const token_set& set) {
  return std::adjacent_find(set.begin(), set.end(), [](const token_range& a, const token_range& b) {
           return last(a) >= b.first;
         }) == set.end();
}

/// Ascending tokens against themselves: whatever the gaps, row i of a document sees its columns up to i.
tile self_tile(std::span<const placed_range> ranges, held_results held, std::int64_t times) {
  const auto first = ranges.front().offset;
  tile t{.row_first = first,
         .col_first = first,
         .mask = {.causal = true},
         .times = times,
         .adds_rows = held.rows,
         .adds_cols = held.cols};
  for (const auto& r : ranges) t.rows += r.tokens.count;
  t.cols = t.rows;
  return t;
}

/// How many keys are before the queries where they are earlier tokens followed by the queries themselves; else 0.
std::int64_t tokens_before(const token_set& queries, const token_set& keys) {
  const auto before = size(keys) - size(queries);
  if (before <= 0 || slice(keys, before, size(queries)) != joined(queries)) return 0;
  const auto earlier = slice(keys, 0, before);
  const bool is_earlier = std::all_of(earlier.begin(), earlier.end(), [&](const token_range& r) {
    return last(r) < queries.front().first;
  });
  return is_earlier ? before : 0;
}

/// Ascending tokens against `before` earlier ones and themselves, without the padding.
tile continued_tile(std::span<const placed_range> ranges, held_results held, std::int64_t before) {
  auto t = self_tile(ranges, held, 1);
  t.col_first = 0;
  t.cols += before;
  t.mask.query_first = before;
  return t;
}

bool rows_overlap(const tile& a, const tile& b) {
  return a.row_first < b.row_first + b.rows * b.row_step &&
         b.row_first < a.row_first + a.rows * a.row_step &&
         (a.row_step != b.row_step || a.row_step == 1 ||
          a.row_first % a.row_step == b.row_first % b.row_step);
}

bool cols_overlap(const tile& a, const tile& b) {
  return a.col_first < b.col_first + b.cols * b.col_step &&
         b.col_first < a.col_first + a.cols * a.col_step &&
         (a.col_step != b.col_step || a.col_step == 1 ||
          a.col_first % a.col_step == b.col_first % b.col_step);
}

/// Marks the tiles that meet rows or columns an earlier one has written; most meet the latest, or none has come so far.
void mark_accumulation(std::vector<tile>& tiles, held_results held) {
  std::int64_t rows_end = 0, cols_end = 0;
  for (auto t = tiles.begin(); t != tiles.end(); ++t) {
    const auto earlier = std::make_reverse_iterator(t);
    t->adds_rows = held.rows || (t->row_first < rows_end &&
                                 std::any_of(earlier, tiles.rend(), [&](const tile& other) {
                                   return rows_overlap(other, *t);
                                 }));
    t->adds_cols = held.cols || (t->col_first < cols_end &&
                                 std::any_of(earlier, tiles.rend(), [&](const tile& other) {
                                   return cols_overlap(other, *t);
                                 }));
    rows_end = std::max(rows_end, t->row_first + t->rows * t->row_step);
    cols_end = std::max(cols_end, t->col_first + t->cols * t->col_step);
  }
}

/// Whether every row sees every column.
bool sees_all(const placed_range& q, const placed_range& k, const attention& a) {
  return a.window == 0 && (a.mask != mask_kind::causal || last(k.tokens) <= q.tokens.first);
}

bool sees_none(const placed_range& q, const placed_range& k, const attention& a) {
  return a.mask == mask_kind::causal && k.tokens.first > last(q.tokens);
}

/// Whether the keys, which all of these queries see, are the tile's next columns.
bool continues(const tile& t, const placed_range& q, const placed_range& k) {
  return t.col_first + t.cols == k.offset && !t.mask.causal && t.col_step == 1 && k.step == 1 &&
         t.row_first == q.offset && t.rows == q.tokens.count && t.row_step == q.step;
}

/// The calls for one range of queries: most pairs of ranges see all or nothing.
std::vector<tile> tiles_of_row(const placed_range& q, std::span<const placed_range> keys,
                               const attention& a, bool staircase) {
  std::vector<tile> row, of_pair;
  for (const auto& k : keys) {
    if (sees_none(q, k, a)) continue;
    if (sees_all(q, k, a)) {
      if (!row.empty() && continues(row.back(), q, k)) {
        row.back().cols += k.tokens.count;
      } else {
        row.push_back(make_tile(q, k, a));
      }
      continue;
    }
    of_pair.clear();
    append_tiles(of_pair, q, k, a, staircase);
    for (const auto& t : of_pair) append_beside(row, t);
  }
  return row;
}

/// Queries whose window has moved on from first tokens of their document, and these tokens. A query sees a key behind its window as
/// one a window earlier in the sequence would under a causal mask.
struct kept_pair {
  placed_range queries;  ///< a window earlier
  placed_range keys;
};

/// Calls `pair` with what the document that begins at `begin` has of them.
template <typename Pair>
void each_kept_pair(std::span<const placed_range> queries, std::span<const placed_range> keys,
                    const attention& a, std::int64_t begin, const Pair& pair) {
  for (const auto& k : keys) {
    const auto kept = up_to(k, count_before(k.tokens, begin + a.kept_first));
    if (kept.tokens.count <= 0) continue;
    for (auto q : queries) {
      q.tokens.first -= a.window;
      q = from(q, count_before(q.tokens, kept.tokens.first));
      if (q.tokens.count > 0) pair(kept_pair{q, kept});
    }
  }
}

attention without_window(attention a) {
  a.window = a.kept_first = 0;
  return a;
}

/// The calls for first tokens of a document that begins at `begin`, behind the window.
void append_kept(std::vector<tile>& tiles, std::span<const placed_range> queries,
                 std::span<const placed_range> keys, const attention& a, bool staircase,
                 std::int64_t begin) {
  const auto behind = without_window(a);
  each_kept_pair(queries, keys, a, begin, [&](const kept_pair& pair) {
    append_tiles(tiles, pair.queries, pair.keys, behind, staircase);
  });
}

/// The calls for the ranges of one document, which begins at `begin`.
void append_document(std::vector<tile>& all, std::span<const placed_range> queries,
                     std::span<const placed_range> keys, const attention& a, bool staircase,
                     held_results held, const token_document& document) {
  seen_columns seen(keys, a);
  tile_rows rows(seen);
  for (const auto& q : queries) {
    if (const auto list = seen.of(q)) {
      rows.append(q, *list);
    } else {
      rows.append(tiles_of_row(q, keys, a, staircase));
    }
  }
  auto tiles = std::move(rows).take();
  if (a.kept_first > 0) append_kept(tiles, queries, keys, a, staircase, document.begin);
  mark_accumulation(tiles, held);
  for (auto& t : tiles) {
    t.times = document.times;
    all.push_back(t);
  }
}

}  // namespace

std::string_view name_of(token_layout layout) {
  return find_name(layouts, layout);
}
bool is_zigzag(token_layout layout) {
  return layout == token_layout::zigzag || layout == token_layout::zigzag_stream;
}
token_layout parse_token_layout(std::string_view text) {
  return find_value(layouts, text);
}

std::int64_t layout_unit(token_layout layout, std::int64_t ranks, std::int64_t parts) {
  const std::int64_t pieces = is_zigzag(layout) ? 2 : 1;
  return ranks / parts * std::lcm(pieces, parts);
}

token_set tokens_of(token_layout layout, std::int64_t sequence, std::int64_t chunks,
                    std::int64_t chunk) {
  const auto size = sequence / chunks;
  switch (layout) {
    case token_layout::contiguous:
      return {{chunk * size, size, 1}};
    case token_layout::striped:
      return {{chunk, size, chunks}};
    case token_layout::zigzag:
    case token_layout::zigzag_stream: {
      const auto half = size / 2;
      return {{chunk * half, half, 1}, {(2 * chunks - 1 - chunk) * half, half, 1}};
    }
  }
  return {};
}

namespace {

/// Of a sequence whose chunks have unequal shares: its tokens, then padding from behind the sequence's.
token_set unequal_tokens(token_layout layout, const attention& a, std::int64_t chunk) {
  const auto real = a.sequence - a.padding;
  const auto room = a.sequence / static_cast<std::int64_t>(a.shares.size());
  const auto size = a.shares[static_cast<std::size_t>(chunk)];
  const auto before = std::accumulate(a.shares.begin(), a.shares.begin() + chunk, std::int64_t{0});
  token_set all{{before, size, 1}};
  if (is_zigzag(layout))
    all = {{before / 2, size / 2, 1}, {real - before / 2 - size / 2, size / 2, 1}};
  if (size < room) all.push_back({real + chunk * room - before, room - size, 1});
  return all;
}

/// In proportion to the weights, by largest remainders.
std::vector<std::int64_t> shared_units(std::int64_t units, const std::vector<int>& weights) {
  const auto total = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  std::vector<std::int64_t> shares;
  std::vector<std::pair<std::int64_t, std::size_t>> remainders;
  for (const auto weight : weights) {
    shares.push_back(std::max<std::int64_t>(1, units * weight / total));
    remainders.emplace_back(-(units * weight % total), remainders.size());
  }
  std::sort(remainders.begin(), remainders.end());
  auto left = units - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; i = (i + 1) % shares.size(), --left)
    ++shares[remainders[i].second];
  for (; left < 0; ++left) --*std::max_element(shares.begin(), shares.end());
  return shares;
}

}  // namespace

attention with_shares(attention a, const std::vector<int>& weights, token_layout layout,
                      std::int64_t unit) {
  const auto chunks = static_cast<std::int64_t>(weights.size());
  const auto refuse = [&](const std::string& why) {
    throw infeasible(asked("shares"), fmt::format("{}", fmt::join(weights, ",")), why);
  };
  if (layout == token_layout::striped) refuse("unequal shares need contiguous or zigzag tokens");
  if (!a.documents.empty() || a.prefix > 0 || a.kv_sequence > 0 || a.window > 0 || a.padding > 0)
    refuse("unequal shares are of one whole sequence, without window, prefix or padding");
  if (std::any_of(weights.begin(), weights.end(), [](int one) { return one < 1; }))
    refuse("expected whole numbers of at least 1");
  if (a.sequence % unit != 0 || a.sequence / unit < chunks)
    refuse(fmt::format("{} tokens are not at least {} times {}", a.sequence, chunks, unit));
  a.shares = shared_units(a.sequence / unit, weights);
  for (auto& share : a.shares) share *= unit;
  const auto room = *std::max_element(a.shares.begin(), a.shares.end());
  a.padding = chunks * room - a.sequence;
  a.sequence += a.padding;
  return a;
}

token_set tokens_of(token_layout layout, const attention& a, std::int64_t chunks,
                    std::int64_t chunk) {
  if (!a.shares.empty()) return unequal_tokens(layout, a, chunk);
  if (layout != token_layout::zigzag || a.documents.empty()) {
    auto all = tokens_of(layout, a.sequence, chunks, chunk);
    for (auto& r : all) r.first += a.prefix;
    return all;
  }
  auto bounds = document_bounds(a);
  if (a.padding > 0) bounds.push_back(a.sequence);
  token_set all;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    for (auto r : tokens_of(layout, bounds[i + 1] - bounds[i], chunks, chunk)) {
      r.first += bounds[i];
      all.push_back(r);
    }
  }
  return all;
}

token_set keys_of(token_layout layout, const attention& a, std::int64_t chunks,
                  std::int64_t chunk) {
  if (a.kv_sequence > 0) return tokens_of(layout, a.kv_sequence, chunks, chunk);
  const auto own = tokens_of(layout, a, chunks, chunk);
  if (a.prefix == 0) return own;
  auto all = tokens_of(layout, a.prefix, chunks, chunk);
  all.insert(all.end(), own.begin(), own.end());
  return joined(all);
}

std::int64_t cache_shard_tokens(token_layout layout, const attention& a, std::int64_t chunks) {
  const auto unit = layout_unit(layout, chunks);
  return (a.tokens(token_side::keys) + unit - 1) / unit * unit / chunks;
}

token_set cache_shard(token_layout layout, const attention& a, std::int64_t chunks,
                      std::int64_t chunk) {
  const auto longest = cache_shard_tokens(layout, a, chunks);
  return before(tokens_of(layout, longest * chunks, chunks, chunk), a.tokens(token_side::keys));
}

token_set all_tokens(const attention& a, token_side side) {
  return {{side == token_side::queries ? a.prefix : 0, a.tokens(side), 1}};
}

token_set slice(const token_set& set, std::int64_t first, std::int64_t count) {
  token_set result;
  for (const auto& r : set) {
    const auto from = std::clamp<std::int64_t>(first, 0, r.count);
    const auto to = std::clamp<std::int64_t>(first + count, 0, r.count);
    if (from < to) result.push_back({r.first + from * r.stride, to - from, r.stride});
    first -= r.count;
  }
  return result;
}

std::int64_t size(const token_set& set) {
  std::int64_t total = 0;
  for (const auto& r : set) total += r.count;
  return total;
}

token_set before(const token_set& set, std::int64_t end) {
  token_set all;
  for (auto r : set) {
    r.count = count_before(r, end);
    if (r.count > 0) all.push_back(r);
  }
  return all;
}

token_set joined(const token_set& set) {
  token_set result;
  for (const auto& r : set) {
    if (!result.empty() && result.back().stride == r.stride &&
        last(result.back()) + r.stride == r.first) {
      result.back().count += r.count;
    } else {
      result.push_back(r);
    }
  }
  return result;
}

token_set ascending(const token_set& set) {
  auto sorted = set;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto n = static_cast<std::int64_t>(sorted.size());
  if (n < 2) return sorted;
  const auto gap = sorted[1].first - sorted[0].first;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& r = sorted[static_cast<std::size_t>(i)];
    const bool interleaves =
        r.first == sorted[0].first + i * gap && r.count == sorted[0].count && r.stride == gap * n;
    if (!interleaves) return joined(sorted);
  }
  return {{sorted[0].first, sorted[0].count * n, gap}};
}

std::vector<token_document> shared_documents(const token_set& queries, const token_set& keys,
                                             const std::vector<std::int64_t>& bounds) {
  const auto of_queries = documents_of(queries, bounds), of_keys = documents_of(keys, bounds);
  std::vector<token_document> shared;
  auto q = of_queries.begin(), k = of_keys.begin();
  while (q != of_queries.end() && k != of_keys.end()) {
    const auto end = std::min(q->second, k->second);
    for (auto d = std::max(q->first, k->first); d < end; ++d)
      shared.push_back({bounds[d], bounds[d + 1]});
    ++(q->second < k->second ? q : k);
  }
  return shared;
}

std::vector<tile> kernel_tiles(const token_set& queries, const token_set& keys, const attention& a,
                               bool staircase, const std::vector<token_document>& documents,
                               held_results held) {
  const bool triangles = a.mask == mask_kind::causal && a.window == 0;
  const bool self = triangles && queries == keys && is_ascending(queries);
  const bool continues = triangles && a.prefix > 0 && is_ascending(queries);
  const auto before = continues ? tokens_before(queries, keys) : 0;
  const auto key_ranges = placed_of(a, token_side::keys, keys, documents);
  std::vector<tile> all;
  each_document(placed_of(a, token_side::queries, queries, documents), key_ranges,
                [&](const auto& rows, const auto& cols) {
                  const auto document =
                      a.kv_sequence > 0 ? token_document() : documents[rows.front().document];
                  if (self) return all.push_back(self_tile(rows, held, document.times));
                  if (before > 0) return all.push_back(continued_tile(rows, held, before));
                  append_document(all, rows, cols, a, staircase, held, document);
                });
  return all;
}

/// Of blocks in another order the tokens are not kept: rows of large grids have thousands of ranges.
placed_block::placed_block(const token_set& tokens, const std::vector<token_document>& documents)
    : ascends_(is_ascending(tokens)) {
  if (ascends_) tokens_ = tokens;
  const auto all = placed(tokens, documents);
  for (auto from = all.begin(); from != all.end();) {
    const auto to = std::find_if(
        from, all.end(), [&](const placed_range& r) { return r.document != from->document; });
    parts_.push_back({from->document, range_series(placed_ranges(from, to))});
    from = to;
  }
}

bool placed_block::is_same_ascending(const placed_block& other) const {
  return ascends_ && other.ascends_ && tokens_ == other.tokens_;
}

namespace {

placed_ranges ranges_of(const range_series& series) {
  placed_ranges all;
  for (std::int64_t i = 0; i < series.repeats(); ++i) {
    for (std::size_t p = 0; p < series.phases(); ++p) all.push_back(series.range(p, i));
  }
  all.insert(all.end(), series.rest().begin(), series.rest().end());
  return all;
}

/// The tiles of what is looked at, counted for what is left out.
void append_counted(std::vector<tile>& all, const range_series& queries, const range_series& keys,
                    const attention& a, bool staircase, held_results held,
                    const token_document& document) {
  const bool causal = a.mask == mask_kind::causal;
  const auto rows = fold_queries(queries, keys, causal), cols = fold_keys(keys, queries, causal);
  const auto first = all.size();
  append_document(all, rows.ranges, cols.ranges, a, staircase, held, document);
  for (auto i = first; i < all.size(); ++i) {
    auto& t = all[i];
    const auto of_rows = rows.unfold(t.row_first, t.row_first + t.rows * t.row_step);
    const auto of_cols = cols.unfold(t.col_first, t.col_first + t.cols * t.col_step);
    t.rows += of_rows.more;
    t.cols += of_cols.more;
    t.times *= of_rows.times * of_cols.times;
  }
}

}  // namespace

std::vector<tile> counted_tiles(const placed_block& queries, const placed_block& keys,
                                const attention& a, bool staircase,
                                const std::vector<token_document>& documents, held_results held) {
  const bool self = a.mask == mask_kind::causal && queries.is_same_ascending(keys);
  std::vector<tile> all;
  auto k = keys.parts().begin();
  for (const auto& q : queries.parts()) {
    while (k != keys.parts().end() && k->document < q.document) ++k;
    if (k == keys.parts().end()) break;
    if (k->document != q.document) continue;
    const auto& document = documents[q.document];
    if (self) {
      all.push_back(self_tile(ranges_of(q.ranges), held, document.times));
    } else {
      append_counted(all, q.ranges, k->ranges, a, staircase, held, document);
    }
  }
  return all;
}

std::vector<tile> kernel_tiles(const token_set& queries, const token_set& keys, const attention& a,
                               bool staircase) {
  return kernel_tiles(queries, keys, a, staircase,
                      shared_documents(queries, keys, document_bounds(a)));
}

std::vector<tile> kept_tiles(const token_set& queries, const token_set& keys, const attention& a,
                             bool staircase, held_results held) {
  const std::vector<token_document> whole{{0, document_bounds(a).back()}};
  std::vector<tile> all;
  append_kept(all, placed(queries, whole), placed(keys, whole), a, staircase, 0);
  mark_accumulation(all, held);
  return all;
}

std::int64_t visible_pairs(const token_set& queries, const token_set& keys, const attention& a) {
  const auto documents = shared_documents(queries, keys, document_bounds(a));
  const auto key_ranges = placed_of(a, token_side::keys, keys, documents);
  std::int64_t total = 0;
  each_document(placed_of(a, token_side::queries, queries, documents), key_ranges,
                [&](const auto& rows, const auto& cols) {
                  for (const auto& q : rows) {
                    for (const auto& k : cols) total += make_tile(q, k, a).pairs();
                  }
                  if (a.kept_first == 0) return;
                  const auto behind = without_window(a);
                  each_kept_pair(rows, cols, a, documents[rows.front().document].begin,
                                 [&](const kept_pair& pair) {
                                   total += make_tile(pair.queries, pair.keys, behind).pairs();
                                 });
                });
  return total;
}

std::int64_t visible_pairs(const attention& a) {
  return visible_pairs(all_tokens(a, token_side::queries), all_tokens(a, token_side::keys), a);
}

std::int64_t visible_pairs_of_batch(const attention& a) {
  if (a.prefixes.empty()) return a.batch * visible_pairs(a);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < a.prefixes.size(); ++i) total += visible_pairs(request_of(a, i));
  return total;
}

}  // namespace attnsim
