#include "model/attention/tokens.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<token_layout, 4> layouts{{{token_layout::contiguous, "contiguous"},
                                               {token_layout::zigzag, "zigzag"},
                                               {token_layout::zigzag_stream, "zigzag-stream"},
                                               {token_layout::striped, "striped"}}};

/// A range and where it starts in its block.
struct placed_range {
  token_range tokens;
  std::int64_t offset;
  std::int64_t document = 0;
  std::int64_t step = 1;
};

std::int64_t last(const token_range& r) {
  return r.first + (r.count - 1) * r.stride;
}

/// Without the tokens at or after `end`, which are padding.
std::int64_t count_before(const token_range& r, std::int64_t end) {
  if (r.first >= end) return 0;
  return std::min(r.count, (end - 1 - r.first) / r.stride + 1);
}

/// Joined ranges, cut where documents end, without the padding.
std::vector<placed_range> placed(const token_set& set, const std::vector<std::int64_t>& bounds) {
  std::vector<placed_range> result;
  std::int64_t offset = 0;
  for (const auto& r : joined(set)) {
    const auto next = std::upper_bound(bounds.begin(), bounds.end(), r.first);
    std::int64_t done = 0;
    for (auto end = next; end != bounds.end() && done < r.count; ++end) {
      const auto count = count_before(r, *end) - done;
      if (count == 0) continue;
      result.push_back(
          {{r.first + done * r.stride, count, r.stride}, offset + done, end - bounds.begin()});
      done += count;
    }
    offset += r.count;
  }
  return result;
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

/// Appends the calls for one pair of ranges.
void append_tiles(std::vector<tile>& tiles, const placed_range& q, const placed_range& k,
                  const attention& a, bool staircase) {
  const auto t = make_tile(q, k, a);
  if (t.pairs() == 0) return;
  const auto query_stride = q.tokens.stride, key_stride = k.tokens.stride;
  if (!t.mask.causal || staircase || query_stride == key_stride) {
    tiles.push_back(t);
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
bool same_cols(const tile& a, const tile& b) {
  return a.col_first == b.col_first && a.cols == b.cols && a.col_step == b.col_step;
}

/// Joins full tiles side by side, then one below the other.
std::vector<tile> merged(std::vector<tile> tiles) {
  std::vector<tile> wide;
  for (const auto& t : tiles) {
    const bool extends = !wide.empty() && !t.mask.causal && !wide.back().mask.causal &&
                         same_rows(wide.back(), t) && wide.back().col_step == 1 &&
                         t.col_step == 1 && wide.back().col_first + wide.back().cols == t.col_first;
    if (extends) {
      wide.back().cols += t.cols;
    } else {
      wide.push_back(t);
    }
  }
  std::vector<tile> result;
  for (const auto& t : wide) {
    const auto above = std::find_if(result.begin(), result.end(), [&](const tile& r) {
      return !t.mask.causal && !r.mask.causal && same_cols(r, t) && r.row_step == 1 &&
             t.row_step == 1 && r.row_first + r.rows == t.row_first;
    });
    if (above != result.end()) {
      above->rows += t.rows;
    } else {
      result.push_back(t);
    }
  }
  return result;
}

bool is_ascending(const token_set& set) {
  return std::adjacent_find(set.begin(), set.end(), [](const token_range& a, const token_range& b) {
           return last(a) >= b.first;
         }) == set.end();
}

/// Ascending tokens against themselves: whatever the gaps, row i of a document sees its columns up to i.
std::vector<tile> self_tiles(const std::vector<placed_range>& ranges) {
  std::vector<tile> tiles;
  std::int64_t document = -1;
  for (const auto& r : ranges) {
    if (r.document != std::exchange(document, r.document))
      tiles.push_back({.row_first = r.offset, .col_first = r.offset, .mask = {.causal = true}});
    tiles.back().rows += r.tokens.count;
    tiles.back().cols += r.tokens.count;
  }
  return tiles;
}

/// Calls `pair` with each two ranges of one document, in the order of the queries, then of the keys.
template <typename Pair>
void each_pair(const std::vector<placed_range>& queries, std::vector<placed_range> keys,
               const Pair& pair) {
  const auto before = [](const placed_range& a, const placed_range& b) {
    return a.document < b.document;
  };
  std::stable_sort(keys.begin(), keys.end(), before);
  for (const auto& q : queries) {
    const auto [first, last] = std::equal_range(keys.begin(), keys.end(), q, before);
    for (auto k = first; k != last; ++k) pair(q, *k);
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

token_set tokens_of(token_layout layout, const attention& a, std::int64_t chunks,
                    std::int64_t chunk) {
  if (layout != token_layout::zigzag || a.documents.empty())
    return tokens_of(layout, a.sequence, chunks, chunk);
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

std::vector<tile> kernel_tiles(const token_set& queries, const token_set& keys, const attention& a,
                               bool staircase) {
  const auto bounds = document_bounds(a);
  const auto rows = placed(queries, bounds);
  const bool triangles = a.mask == mask_kind::causal && a.window == 0;
  if (triangles && queries == keys && is_ascending(queries)) return self_tiles(rows);
  std::vector<tile> tiles;
  each_pair(rows, placed(keys, bounds),
            [&](const auto& q, const auto& k) { append_tiles(tiles, q, k, a, staircase); });
  return merged(std::move(tiles));
}

std::int64_t visible_pairs(const token_set& queries, const token_set& keys, const attention& a) {
  const auto bounds = document_bounds(a);
  std::int64_t total = 0;
  each_pair(placed(queries, bounds), placed(keys, bounds),
            [&](const auto& q, const auto& k) { total += make_tile(q, k, a).pairs(); });
  return total;
}

}  // namespace attnsim
