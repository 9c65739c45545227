#include "model/cost/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "model/attention/halo.hpp"
#include "model/error.hpp"

namespace attnsim {
namespace {

bool adds(const tile& t, const operand& result) {
  return is_key_side(result.what) ? t.adds_cols : t.adds_rows;
}

std::int64_t tokens_of(const tile& t, const operand& result) {
  return is_key_side(result.what) ? t.cols : t.rows;
}

/// Visible pairs if the sequence had so many tokens.
std::int64_t pairs_of(attention a, std::int64_t tokens) {
  a.sequence = tokens;
  a.padding = 0;
  return visible_pairs(a);
}

precision format_of(const schedule& s, const operand& o) {
  return s.buffer_of(o).format;
}

std::int64_t heads_of(const head_range& heads, tensor t) {
  if (t == tensor::latent) return 1;
  return is_key_side(t) ? heads.keys : heads.queries;
}

std::int64_t number_bytes(const attention& a, tensor t, precision format) {
  return element_bytes(number_type(a, t, format));
}

/// Parts of the heads are alike: each has as many K/V heads.
void require_parts(const attention& a, const schedule& s) {
  if (s.parts == 1 || a.kv_heads % (s.parts * s.tensor_parallel) == 0) return;
  throw infeasible(asked("parts"), std::to_string(s.parts),
                   fmt::format("does not divide the {} K/V heads of {} tensor-parallel ranks",
                               a.kv_heads, s.tensor_parallel));
}

}  // namespace

data_type number_type(const attention& a, tensor t, precision format) {
  if (format == precision::fp32 || is_statistic(t)) return data_type::fp32;
  const bool travels = format == precision::wire;
  if (!is_input(t) && !(travels && t == tensor::latent)) return result_type(a.dtype);
  return travels ? a.wire_dtype.value_or(a.dtype) : a.dtype;
}

std::int64_t head_elements(const attention& a, tensor t) {
  if (is_statistic(t)) return 1;
  if (t == tensor::latent) return a.latent_rank + a.rotary;
  if (t == tensor::expansion) return a.latent_rank * (a.head_dim - a.rotary + a.value_dim());
  return has_value_dim(t) ? a.value_dim() : a.head_dim;
}

std::int64_t token_bytes(const attention& a, tensor t, precision format, const head_range& heads) {
  if (a.latent && t == tensor::v) return 0;
  const auto of_head = head_elements(a, t) * number_bytes(a, t, format);
  return a.batch * heads_of(heads, t) * of_head;
}

std::int64_t padded_sequence(std::int64_t sequence, token_layout layout, std::int64_t ranks,
                             std::int64_t parts) {
  const auto unit = layout_unit(layout, ranks, parts);
  return (sequence + unit - 1) / unit * unit;
}

namespace {

/// Each document is laid out by itself.
void require_documents(const attention& a, std::int64_t ranks, std::int64_t parts) {
  for (const auto length : a.documents) {
    const auto padded = padded_sequence(length, token_layout::zigzag, ranks, parts);
    if (padded == length) continue;
    throw infeasible(asked("documents"), std::to_string(length),
                     fmt::format("not a multiple of {}, as zigzag tokens of each document over {} "
                                 "ranks need; pad each (this one to {}) or take zigzag-stream",
                                 layout_unit(token_layout::zigzag, ranks, parts), ranks, padded));
  }
}

}  // namespace

bool fits_layout(const attention& a, token_layout layout, std::int64_t ranks, std::int64_t parts) {
  const auto fits = [&](std::int64_t tokens) {
    return padded_sequence(tokens, layout, ranks, parts) == tokens;
  };
  return fits(a.sequence) && fits(a.prefix) && fits(a.kv_sequence) &&
         (layout != token_layout::zigzag ||
          std::all_of(a.documents.begin(), a.documents.end(), fits));
}

namespace {

/// Keys are laid out by themselves; what stands in a cache can't be padded.
void require_keys(const char* field, std::int64_t tokens, token_layout layout, std::int64_t ranks,
                  std::int64_t parts) {
  const auto unit = layout_unit(layout, ranks, parts);
  if (tokens % unit == 0) return;
  const auto less = tokens / unit * unit;
  throw infeasible(
      asked(field), std::to_string(tokens),
      fmt::format("not a multiple of {}, as {} tokens over {} ranks need; nearest: {}{}", unit,
                  name_of(layout), ranks, less > 0 ? fmt::format("{} and ", less) : "",
                  less + unit));
}

/// The nearest that the layout takes: at most so many tokens, at least so many.
std::pair<std::int64_t, std::int64_t> lengths_around(std::int64_t tokens, token_layout layout,
                                                     std::int64_t ranks, std::int64_t parts) {
  const auto unit = layout_unit(layout, ranks, parts);
  return {tokens / unit * unit, padded_sequence(tokens, layout, ranks, parts)};
}

/// Lengths nearer than the layout's that striped tokens take, which need no pairs of pieces.
std::string nearer_striped(std::int64_t tokens, token_layout layout, std::int64_t ranks,
                           std::int64_t parts) {
  const auto [less, more] = lengths_around(tokens, layout, ranks, parts);
  const auto [below, above] = lengths_around(tokens, token_layout::striped, ranks, parts);
  if (below <= less && above >= more) return "";
  const bool both = below > less && above < more && below < above;
  return fmt::format("; striped tokens take {}{}", both ? fmt::format("{} and ", below) : "",
                     above < more ? above : below);
}

}  // namespace

void require_layout(const attention& a, token_layout layout, std::int64_t ranks,
                    std::int64_t parts) {
  require_keys("prefix", a.prefix, layout, ranks, parts);
  require_keys("kv-seq", a.kv_sequence, layout, ranks, parts);
  if (layout == token_layout::zigzag) require_documents(a, ranks, parts);
  const auto [less, padded] = lengths_around(a.sequence, layout, ranks, parts);
  if (padded == a.sequence) return;
  const auto more = [](std::int64_t all, std::int64_t useful) {
    return percent(static_cast<double>(all - useful) / static_cast<double>(useful));
  };
  throw infeasible(asked("seq"), std::to_string(a.sequence),
                   fmt::format("not a multiple of {}, as {} tokens over {} ranks need; pad by {} "
                               "to {} ({} more tokens, {} more work){}{}",
                               layout_unit(layout, ranks, parts), name_of(layout), ranks,
                               padded - a.sequence, padded, more(padded, a.sequence),
                               more(pairs_of(a, padded), pairs_of(a, a.sequence)),
                               less > 0 ? fmt::format(" or cut to {}", less) : "",
                               nearer_striped(a.sequence, layout, ranks, parts)));
}

token_layout nearest_layout(const attention& a, std::span<const token_layout> layouts,
                            std::int64_t ranks, std::int64_t parts) {
  return *std::min_element(layouts.begin(), layouts.end(),
                           [&](token_layout one, token_layout other) {
                             return padded_sequence(a.sequence, one, ranks, parts) <
                                    padded_sequence(a.sequence, other, ranks, parts);
                           });
}

workload::workload(const schedule& s, const attention& a, token_layout layout, bool staircase,
                   merge_kind merges)
    : schedule_(&s),
      attention_(a),
      layout_(layout),
      staircase_(staircase),
      merges_(merges),
      documents_(document_bounds(a), s.chunk_total() / s.chunks_in_slot(head_form::share)),
      whole_({{0, document_bounds(a).back()}}),
      lengths_(lengths_of(a)) {
  check(a);
  attnsim::check(a, s.pass);
  const int parts = s.grid.extent_of(s.head_axis);
  if (!s.whole_queries) require_layout(a, layout, s.chunk_total(), parts);
  const auto all = all_heads(a);
  require_parts(a, s);
  const auto can_exchange = [&](const head_range& own) {
    return s.whole_queries ? own.queries % parts == 0 : can_share(own, parts);
  };
  if (!can_share(all, s.tensor_parallel) ||
      !can_exchange(share_of(share_of(all, s.tensor_parallel, 0), s.parts, 0))) {
    throw infeasible(
        asked("ulysses"), std::to_string(parts),
        fmt::format("{} query and {} K/V heads over {} tensor-parallel ranks can't be shared",
                    a.heads, a.kv_heads, s.tensor_parallel));
  }
  even_heads_ = shares_evenly(all, s.tensor_parallel) &&
                (s.whole_queries ||
                 shares_evenly(share_of(share_of(all, s.tensor_parallel, 0), s.parts, 0), parts));
  equal_shards_ =
      a.prefixes.empty() &&
      (!s.whole_queries || a.tokens(token_side::keys) % layout_unit(layout, s.chunk_total()) == 0);
  for (const auto form : {head_form::all, head_form::share, head_form::dealt})
    slot_heads_[static_cast<std::size_t>(form)] = heads(0, form);
}

std::int64_t workload::chunk_tokens(token_side side) const {
  const auto& a = attention_;
  if (side == token_side::keys && schedule_->whole_queries)
    return cache_shard_tokens(layout_, a, schedule_->chunk_total());
  const bool others = side == token_side::keys && a.kv_sequence > 0;
  return (others ? a.kv_sequence : a.sequence) / schedule_->chunk_total(side);
}

std::int64_t workload::tail_tokens() const {
  return halo_of(attention_, schedule_->chunk_total()).tail;
}

std::int64_t workload::slot_tokens(const buffer& b) const {
  if (b.tail) return tail_tokens();
  if (b.kept) return attention_.kept_first;
  if (is_parameter(b.what)) return 1;
  return chunk_tokens(side_of(b.what)) * schedule_->chunks_in_slot(b.heads) +
         (is_key_side(b.what) ? cached_tokens(b.heads) : 0);
}

int workload::slot_total() const {
  return schedule_->chunk_total() / schedule_->chunks_in_slot(head_form::share);
}

std::int64_t workload::cached_tokens(head_form form) const {
  const bool stays_here = exchanges_heads() == (form == head_form::share);
  return stays_here && !schedule_->whole_queries ? attention_.prefix / slot_total() : 0;
}

operands workload::caches() const {
  operands all;
  if (attention_.prefix == 0 || !exchanges_heads()) return all;
  for (const auto& op : schedule_->program) {
    if (!is_communication(op.kind) || op.axes != schedule_->head_axis) continue;
    for (const auto& o : op.writes) {
      const bool share = schedule_->buffer_of(o).heads == head_form::share;
      if (share && is_key_side(o.what)) all.push_back(o);
    }
  }
  return all;
}

token_set workload::cached_tokens(int rank, const operand& o) const {
  return slice(tokens(rank, o), 0, cached_tokens(head_form::share));
}

/// Consecutive chunks along the head axis are the parts of one slot.
token_set workload::tokens_of_slot(const attention& a, token_side side, int slot) const {
  if (schedule_->whole_queries) {
    return side == token_side::keys ? cache_shard(layout_, a, schedule_->chunk_total(), slot)
                                    : all_tokens(a, side);
  }
  return side == token_side::keys ? keys_of(layout_, a, slot_total(), slot)
                                  : attnsim::tokens_of(layout_, a, slot_total(), slot);
}

/// Without the prefix where it stays in shares of heads.
token_set workload::tokens_of_chunk(const attention& a, token_side side, int chunk) const {
  const int parts = schedule_->chunks_in_slot(head_form::share);
  const auto slot = tokens_of_slot(a, side, chunk / parts);
  if (parts == 1) return slot;
  const auto tokens = chunk_tokens(side);
  const auto before = side == token_side::keys ? cached_tokens(head_form::share) : 0;
  return slice(slot, before + chunk % parts * tokens, tokens);
}

token_set workload::home_tokens(int rank, token_side side) const {
  return tokens_of_chunk(attention_, side, schedule_->chunk_of(rank, side));
}

token_set workload::tokens(int rank, const operand& o) const {
  return tokens(attention_, rank, o);
}

token_set workload::tokens(const attention& a, int rank, const operand& o) const {
  if (is_parameter(o.what)) return {{0, 1, 1}};
  const auto form = schedule_->buffer_of(o).heads;
  const int parts = schedule_->chunks_in_slot(form);
  token_set all;
  for (const int chunk : schedule_->first_chunks(rank, o)) {
    const auto side = side_of(o.what);
    auto part = form == head_form::share ? tokens_of_slot(a, side, chunk / parts)
                                         : tokens_of_chunk(a, side, chunk);
    if (schedule_->buffer_of(o).tail) part = slice(part, size(part) - tail_tokens(), tail_tokens());
    if (schedule_->buffer_of(o).kept) part = slice(part, 0, attention_.kept_first);
    all.insert(all.end(), part.begin(), part.end());
  }
  return o.at.ascending ? ascending(all) : all;
}

head_range workload::heads(int rank, head_form form, int slot, int part) const {
  const auto& s = *schedule_;
  const auto all = share_of(all_heads(attention_), s.tensor_parallel, rank % s.tensor_parallel);
  const auto own = share_of(all, s.parts, part);
  if (form == head_form::all) return own;
  const int place = form == head_form::dealt ? slot : s.grid.place_in_group(rank, s.head_axis);
  const int parts = s.grid.extent_of(s.head_axis);
  return s.whole_queries ? query_share_of(own, parts, place) : share_of(own, parts, place);
}

std::int64_t workload::heads_of_slot(tensor t, head_form form) const {
  return heads_of(slot_heads_[static_cast<std::size_t>(form)], t);
}

std::int64_t workload::token_bytes(tensor t, precision format, head_form form) const {
  return attnsim::token_bytes(attention_, t, format, slot_heads_[static_cast<std::size_t>(form)]);
}

byte_count workload::bytes(const operand& o) const {
  const auto& b = schedule_->buffer_of(o);
  return byte_count(schedule_->slot_count(o) * slot_tokens(b) *
                    token_bytes(o.what, b.format, b.heads));
}

byte_count workload::bytes(const buffer& b) const {
  return byte_count(schedule_->grid.extent_of(b.slots) * slot_tokens(b) *
                    token_bytes(b.what, b.format, b.heads));
}

byte_count workload::bytes_sent(const operation& op, int rank) const {
  byte_count read;
  for (const auto& o : op.reads) read += bytes(o);
  const std::int64_t members = schedule_->grid.extent_of(op.axes);
  switch (op.kind) {
    case op_kind::shift:
    case op_kind::transpose:
      return schedule_->send_peer(op, rank) == rank ? byte_count() : read;
    case op_kind::all_gather:
      return read * (members - 1);
    case op_kind::reduce_scatter:
    case op_kind::all_to_all:
      return read / members * (members - 1);
    default:
      return {};
  }
}

byte_count workload::bytes_sent(int rank) const {
  byte_count total;
  for (const auto& op : schedule_->program) total += bytes_sent(op, rank);
  return total;
}

std::vector<tile> workload::tiles_of(const operation& op, const token_set& queries,
                                     const token_set& keys,
                                     const std::vector<token_document>& documents) const {
  const auto held = held_by(op);
  if (!schedule_->keeps_apart)
    return kernel_tiles(queries, keys, attention_, staircase_, documents, held);
  if (schedule_->buffer_of(find(op.reads, tensor::k)).kept)
    return kept_tiles(queries, keys, attention_, staircase_, held);
  auto in_window = attention_;
  in_window.kept_first = 0;
  return kernel_tiles(queries, keys, in_window, staircase_, documents, held);
}

held_results workload::held_by(const operation& op) const {
  const bool forward = op.kind == op_kind::attention;
  return {.rows = contains(op.reads, forward ? tensor::o : tensor::d_q),
          .cols = !forward && contains(op.reads, tensor::d_k)};
}

/// A request's queries come after its own prefix, its keys are those of the rank's that are in it.
std::vector<tile> workload::tiles_of_requests(const operation& op, int rank, bool counted) const {
  const auto& a = attention_;
  const auto keys = tokens(rank, find(op.reads, tensor::k));
  std::map<std::int64_t, std::size_t> known;
  std::vector<std::int64_t> times(a.prefixes.size(), 1);
  for (std::size_t i = 0; counted && i < a.prefixes.size(); ++i) {
    const auto [first, is_new] = known.try_emplace(a.prefixes[i], i);
    if (!is_new) ++times[first->second], times[i] = 0;
  }
  std::vector<tile> all;
  for (std::size_t i = 0; i < a.prefixes.size(); ++i) {
    if (times[i] == 0) continue;
    const auto one = request_of(a, i);
    const auto end = one.tokens(token_side::keys);
    for (auto t : kernel_tiles(all_tokens(one, token_side::queries), before(keys, end), one,
                               staircase_, {{0, end}})) {
      t.request = static_cast<std::int64_t>(i);
      t.times = times[i];
      all.push_back(t);
    }
  }
  return all;
}

std::vector<tile> workload::tiles(const operation& op, int rank) const {
  if (!attention_.prefixes.empty()) return tiles_of_requests(op, rank, false);
  const auto queries = tokens(rank, find(op.reads, tensor::q));
  const auto keys = tokens(rank, find(op.reads, tensor::k));
  return tiles_of(op, queries, keys, shared_documents(queries, keys, document_bounds(attention_)));
}

/// Its blocks have the same part of each document, not a part of such parts.
bool workload::lays_out_each_document(const operation& op) const {
  const auto whole = [&](const operand& o) {
    return schedule_->chunks_in_slot(head_form::share) == 1 ||
           schedule_->buffer_of(o).heads == head_form::share;
  };
  return layout_ == token_layout::zigzag && !attention_.documents.empty() &&
         !schedule_->whole_queries && attention_.padding == 0 && whole(find(op.reads, tensor::q)) &&
         whole(find(op.reads, tensor::k));
}

const placed_block& workload::block(int rank, const operand& o, known_blocks& known) const {
  const std::pair key(&o, schedule_->first_chunk(rank, o));
  const auto place = known.find(key);
  if (place != known.end()) return place->second;
  return known.emplace(key, placed_block(tokens(rank, o), whole_)).first->second;
}

bool workload::counts_tiles_of_blocks() const {
  return counts_tiles() && attention_.prefixes.empty() && attention_.documents.empty();
}

bool workload::look_at_blocks(const operation& op, int rank, known_blocks& known) const {
  if (!counts_tiles_of_blocks()) return false;
  block(rank, find(op.reads, tensor::q), known);
  block(rank, find(op.reads, tensor::k), known);
  return true;
}

std::vector<tile> workload::counted_tiles(const operation& op, int rank,
                                          known_blocks& known) const {
  if (!attention_.prefixes.empty()) return tiles_of_requests(op, rank, true);
  const auto &q = find(op.reads, tensor::q), &k = find(op.reads, tensor::k);
  if (counts_tiles_of_blocks()) {
    return attnsim::counted_tiles(block(rank, q, known), block(rank, k, known), attention_,
                                  staircase_, whole_, held_by(op));
  }
  const bool each = lays_out_each_document(op);
  const auto& a = each ? lengths_.one_of_each : attention_;
  const auto queries = tokens(a, rank, q), keys = tokens(a, rank, k);
  const auto documents = each ? lengths_.documents : documents_.shared(queries, keys);
  if (!counts_tiles()) return tiles_of(op, queries, keys, documents);
  return attnsim::counted_tiles({queries, documents}, {keys, documents}, a, staircase_, documents,
                                held_by(op));
}

int workload::tile_variant(const operation& op, int rank) const {
  if (same_on_all_ranks()) return 0;
  if (schedule_->whole_queries) return -1;
  const bool alike = attention_.documents.empty() ||
                     (layout_ == token_layout::zigzag && attention_.mask == mask_kind::causal);
  const bool plain = attention_.padding == 0 && attention_.window == 0 && alike && even_heads_;
  if (!plain) return -1;
  const auto& q = find(op.reads, tensor::q);
  const auto& k = find(op.reads, tensor::k);
  if (schedule_->slot_count(q) > 1 || schedule_->slot_count(k) > 1) return -1;
  const int query = schedule_->first_chunk(rank, q), key = schedule_->first_chunk(rank, k);
  return query == key ? 0 : key < query ? 1 : 2;
}

int workload::first_alike(const operation& op, int rank) const {
  const auto& s = *schedule_;
  if (s.whole_queries || !even_heads_) return rank;
  const auto has_share = [&](tensor t) {
    return s.buffer_of(find(op.reads, t)).heads == head_form::share;
  };
  return has_share(tensor::q) && has_share(tensor::k) ? s.grid.first_in_group(rank, s.head_axis)
                                                      : rank;
}

/// A token's share of what unfused operations read and write beyond a fused merge: the partial in fp32 (1), its difference
/// to the output (2), times its weight (2), and the sum (2). Log-sum-exps are small.
std::int64_t workload::merge_bytes(tensor what, head_form form) const {
  constexpr int further_passes = 7;
  if (merges_ == merge_kind::fused || what != tensor::o) return 0;
  return further_passes * token_bytes(what, precision::fp32, form);
}

/// What a token has in memory at once in an unfused merge beside its operands, all fp32: the partial, its difference to the
/// output, and that times its weight; then the sum in place of the difference.
std::int64_t workload::merge_scratch(tensor what, head_form form) const {
  constexpr int at_once = 3;
  if (merges_ == merge_kind::fused || what != tensor::o) return 0;
  return at_once * token_bytes(what, precision::fp32, form);
}

bool workload::merges_in_place(const operation& op) const {
  const auto& first = find(op.reads, tensor::o);
  if (format_of(*schedule_, first) != precision::fp32) return false;
  const auto reads_it = [&](const operation& other) {
    return std::any_of(other.reads.begin(), other.reads.end(),
                       [&](const operand& o) { return o.buffer == first.buffer; });
  };
  return std::none_of(schedule_->program.begin(), schedule_->program.end(),
                      [&](const operation& other) { return &other != &op && reads_it(other); });
}

memory_calls workload::memory_calls_of(const operation& op) const {
  memory_calls use;
  for (const auto* list : {&op.reads, &op.writes}) {
    for (const auto& o : *list) use.traffic += bytes(o);
  }
  const bool one_call = op.kind == op_kind::weigh || op.kind == op_kind::sink;
  use.count = one_call ? 1 : static_cast<int>(op.writes.size());
  if (op.kind != op_kind::merge && op.kind != op_kind::accumulate) return use;
  const bool in_place = op.kind == op_kind::merge && merges_in_place(op);
  for (const auto& sum : op.writes) {
    const auto form = schedule_->buffer_of(sum).heads;
    const auto tokens_in = [&](const operand& o) {
      return schedule_->slot_count(o) * slot_tokens(o);
    };
    std::int64_t added = -tokens_in(sum);
    int parts = 0;
    for (const auto& o : op.reads) {
      if (o.what != sum.what) continue;
      added += tokens_in(o);
      parts += schedule_->slot_count(o) / schedule_->slot_count(sum);
    }
    const auto format = in_place ? precision::fp32 : format_of(*schedule_, sum);
    const auto a_token = 2 * token_bytes(sum.what, format, form) + merge_bytes(sum.what, form);
    use.traffic += byte_count(added * a_token);
    if (!is_statistic(sum.what)) use.additions += parts - 1;
  }
  use.count += use.additions;
  return use;
}

precision workload::result_format(const operation& op, const tile& t) const {
  const bool in_place =
      merges_ == merge_kind::fused &&
      std::all_of(op.writes.begin(), op.writes.end(), [&](const operand& o) {
        return is_statistic(o.what) || (!adds(t, o) && format_of(*schedule_, o) == precision::fp32);
      });
  return in_place ? precision::fp32 : precision::storage;
}

bool workload::uses_scratch(const operation& op, const tile& t, const operand& result) const {
  const auto bytes = [&](precision format) {
    return number_bytes(attention_, result.what, format);
  };
  return adds(t, result) || bytes(format_of(*schedule_, result)) != bytes(result_format(op, t));
}

memory_calls workload::accumulation_of(const operation& op, const tile& t) const {
  memory_calls use;
  for (const auto& o : op.writes) {
    if (!uses_scratch(op, t, o)) continue;
    const auto form = schedule_->buffer_of(o).heads;
    const auto scratch = token_bytes(o.what, result_format(op, t), form);
    const auto place = token_bytes(o.what, format_of(*schedule_, o), form);
    const auto a_token =
        adds(t, o) ? scratch + 2 * place + merge_bytes(o.what, form) : scratch + place;
    use.traffic += byte_count(tokens_of(t, o) * a_token);
    if (is_statistic(o.what)) continue;
    ++use.count;
    use.additions += adds(t, o);
  }
  return use;
}

byte_count workload::scratch_bytes(const operation& op, const tile& t) const {
  std::int64_t total = 0;
  for (const auto& o : op.writes) {
    if (!uses_scratch(op, t, o)) continue;
    const auto form = schedule_->buffer_of(o).heads;
    const auto a_token = token_bytes(o.what, result_format(op, t), form);
    total += tokens_of(t, o) * (a_token + (adds(t, o) ? merge_scratch(o.what, form) : 0));
  }
  return byte_count(total);
}

byte_count workload::scratch_bytes(const operation& merge) const {
  const auto& sum = find(merge.writes, tensor::o);
  const auto form = schedule_->buffer_of(sum).heads;
  return byte_count(schedule_->slot_count(sum) * slot_tokens(sum) * merge_scratch(tensor::o, form));
}

tile workload::with_all_tokens(const operation& op, tile t) const {
  const auto all_tokens = [&](tensor what) {
    const auto& o = find(op.reads, what);
    return schedule_->slot_count(o) * slot_tokens(o);
  };
  t.rows = all_tokens(tensor::q);
  t.cols = all_tokens(tensor::k);
  return t;
}

std::vector<int> workload::some_ranks(int few) const {
  if (ranks() > few) return {0, (ranks() - 1) / 2, ranks() - 1};
  std::vector<int> all(static_cast<std::size_t>(ranks()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

byte_count workload::scratch_bytes() const {
  byte_count largest;
  const auto asked = some_ranks(256);
  for (const auto& op : schedule_->program) {
    if (op.kind == op_kind::merge) largest = std::max(largest, scratch_bytes(op));
    if (!is_kernel(op.kind)) continue;
    const auto most =
        scratch_bytes(op, with_all_tokens(op, {.adds_rows = true, .adds_cols = true}));
    bool seen[3] = {};
    for (const int rank : asked) {
      if (largest >= most) break;
      if (const int variant = tile_variant(op, rank); variant >= 0) {
        if (std::exchange(seen[variant], true)) continue;
      }
      for (const auto& t : counted_tiles(op, rank)) {
        const bool one_call = !attention_.documents.empty() || !attention_.prefixes.empty();
        const auto as_called = one_call ? with_all_tokens(op, t) : t;
        largest = std::max(largest, scratch_bytes(op, as_called));
      }
    }
  }
  return largest;
}

}  // namespace attnsim
