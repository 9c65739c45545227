#include "validate/local_operations.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "validate/shard.hpp"

namespace attnsim::validate {

using kernels::device_tensor;
using kernels::stream_id;
using kernels::token_shape;
using kernels::tokens_from;

local_operations::local_operations(const workload& w, int rank, kernels::backend& device,
                                   const device_memory& memory)
    : work_(w), rank_(rank), device_(device), memory_(memory) {
  const auto& program = w.program().program;
  for (std::size_t op = 0; op < program.size(); ++op) {
    const auto kind = program[op].kind;
    if (kind == op_kind::attention || kind == op_kind::attention_backward)
      tiles_[op] = w.tiles(program[op], rank);
    if (kind != op_kind::copy) continue;
    for (const auto& into : program[op].writes) {
      const auto& from = find(program[op].reads, into.what);
      if (w.program().buffer_of(from).heads != w.program().buffer_of(into).heads) continue;
      moves_[op].push_back(token_moves(w.tokens(rank, from), w.tokens(rank, into)));
    }
  }
}

void local_operations::enqueue(stream_id stream, std::size_t op) {
  const auto& o = work_.program().program[op];
  switch (o.kind) {
    case op_kind::attention:
    case op_kind::attention_backward:
      return attend(stream, op);
    case op_kind::merge:
      return merge(stream, o);
    case op_kind::weigh:
      return weigh(stream, o);
    case op_kind::sink:
      return sink(stream, o);
    case op_kind::accumulate:
      return accumulate(stream, o);
    case op_kind::delta:
      return delta(stream, o);
    case op_kind::expand:
      return expand(stream, o);
    case op_kind::copy:
      return copy(stream, op);
    default:
      throw std::logic_error("not a local operation");
  }
}

// --- Where operands lie ---------------------------------------------------------------------------

std::byte* local_operations::address(const operand& o) const {
  const auto& s = work_.program();
  const auto& b = s.buffer_of(o);
  const int first = s.memory_slot(rank_, o);
  if (first + s.slot_count(o) > s.grid.extent_of(b.slots)) {
    throw std::logic_error("an operand wraps around the end of its buffer");
  }
  return memory_.of(o.buffer) +
         first * slot_tokens(o) * work_.token_bytes(o.what, b.format, b.heads);
}

data_type local_operations::type(const operand& o) const {
  return type_of(work_.problem(), o.what, work_.program().buffer_of(o).format);
}

std::int64_t local_operations::slot_tokens(const operand& o) const {
  return work_.slot_tokens(o);
}

std::int64_t local_operations::token_count(const operand& o) const {
  return work_.program().slot_count(o) * slot_tokens(o);
}

std::int64_t local_operations::heads_of_slot(const operand& o) const {
  return work_.heads_of_slot(o.what, work_.program().buffer_of(o).heads);
}

head_range local_operations::heads(const operand& o, int slot) const {
  return work_.heads(rank_, work_.program().buffer_of(o).heads, slot, o.part);
}

token_shape local_operations::shape(const operand& o) const {
  return shape_of(work_.problem(), o.what, head_count(o.what, heads(o)), token_count(o));
}

device_tensor local_operations::whole(const operand& o) const {
  return placed(address(o), type(o),
                shape_of(work_.problem(), o.what, heads_of_slot(o), token_count(o)));
}

device_tensor local_operations::part(const operand& o, const tile& t) const {
  auto all = whole(o);
  if (t.request > 0) {
    const auto skipped = t.request * all.view.batch_stride * element_bytes(all.type);
    all.view.data = static_cast<std::byte*>(all.view.data) + skipped;
  }
  return is_key_side(o.what) ? tokens_from(all, t.col_first, t.col_step)
                             : tokens_from(all, t.row_first, t.row_step);
}

token_shape local_operations::part_shape(const operand& o, const tile& t) const {
  auto shape = shape_of(work_.problem(), o.what, head_count(o.what, heads(o)),
                        is_key_side(o.what) ? t.cols : t.rows);
  if (t.request >= 0) shape.batch = 1;
  return shape;
}

// --- Attention ------------------------------------------------------------------------------------

void local_operations::attend(stream_id stream, std::size_t number) {
  const auto& op = work_.program().program[number];
  const auto& tiles = tiles_.at(number);
  fill_unwritten(stream, op, tiles);
  if (!work_.problem().prefixes.empty()) return attend_each(stream, op, tiles);
  for (const auto& t : tiles) {
    call_kernel(stream, op, t);
    bring_to_place(stream, op, t);
  }
}

/// The first tiles of all requests by one call, then the second ones, which may add to what these leave.
void local_operations::attend_each(stream_id stream, const operation& op,
                                   const std::vector<tile>& tiles) {
  std::vector<std::vector<tile>> calls;
  std::size_t place = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    place = i > 0 && tiles[i].request == tiles[i - 1].request ? place + 1 : 0;
    if (place == calls.size()) calls.emplace_back();
    calls[place].push_back(tiles[i]);
  }
  for (const auto& call : calls) {
    std::vector<kernels::forward_arguments> blocks;
    for (const auto& t : call) blocks.push_back(forward_arguments_of(op, t));
    device_.forward_each(stream, blocks);
    for (const auto& t : call) bring_to_place(stream, op, t);
  }
}

/// Calls that don't add are the first on all their rows, so these add up.
void local_operations::fill_unwritten(stream_id stream, const operation& op,
                                      const std::vector<tile>& tiles) {
  for (const auto& o : op.writes) {
    if (contains(op.reads, o.what)) continue;
    const bool cols = is_key_side(o.what);
    std::int64_t written = 0;
    for (const auto& t : tiles) {
      if (!(cols ? t.adds_cols : t.adds_rows)) written += cols ? t.cols : t.rows;
    }
    const auto sequences = work_.problem().prefixes.empty() ? 1 : work_.problem().batch;
    if (written == sequences * token_count(o)) continue;
    const bool nothing = o.what == tensor::lse;
    device_.fill(stream, shape(o), whole(o), nothing ? -std::numeric_limits<float>::infinity() : 0);
  }
}

namespace {

kernels::block_shape block_of(const attention& a, const head_range& own, const tile& t) {
  return {.batch = t.request >= 0 ? 1 : a.batch,
          .heads = own.queries,
          .kv_heads = own.keys,
          .head_dim = a.head_dim,
          .v_head_dim = a.v_head_dim,
          .rows = t.rows,
          .cols = t.cols,
          .mask = t.mask};
}

}  // namespace

kernels::forward_arguments local_operations::forward_arguments_of(const operation& op,
                                                                  const tile& t) const {
  const auto& a = work_.problem();
  const auto input = [&](tensor what) { return part(find(op.reads, what), t); };
  return {.shape = block_of(a, heads(op.reads.front()), t),
          .query = input(tensor::q),
          .key = input(tensor::k),
          .value = input(a.latent ? tensor::k : tensor::v),
          .output = target(op, t, tensor::o),
          .lse = target(op, t, tensor::lse)};
}

void local_operations::call_kernel(stream_id stream, const operation& op, const tile& t) {
  if (op.kind == op_kind::attention) return device_.forward(stream, forward_arguments_of(op, t));
  const auto input = [&](tensor what) { return part(find(op.reads, what), t); };
  const auto result = [&](tensor what) { return target(op, t, what); };
  device_.backward(stream, {.shape = block_of(work_.problem(), heads(op.reads.front()), t),
                            .query = input(tensor::q),
                            .key = input(tensor::k),
                            .value = input(tensor::v),
                            .output = {},
                            .output_gradient = input(tensor::d_o),
                            .lse = input(tensor::lse),
                            .delta = input(tensor::delta),
                            .query_gradient = result(tensor::d_q),
                            .key_gradient = result(tensor::d_k),
                            .value_gradient = result(tensor::d_v)});
}

device_tensor local_operations::target(const operation& op, const tile& t, tensor what) const {
  const auto& o = find(op.writes, what);
  return work_.uses_scratch(op, t, o) ? in_scratch(op, t, o) : part(o, t);
}

/// One behind the other, in the order of the operation's results. Requests of one call have room for all their tokens, one behind
/// the other.
device_tensor local_operations::in_scratch(const operation& op, const tile& t,
                                           const operand& wanted) const {
  const auto format = work_.result_format(op, t);
  const auto form = work_.program().buffer_of(wanted).heads;
  const bool one_of_many = t.request >= 0;
  auto* at = memory_.scratch();
  for (const auto& o : op.writes) {
    const auto tokens = one_of_many ? token_count(o) : part_shape(o, t).tokens;
    const auto all = tokens * work_.token_bytes(o.what, format, form);
    if (o.what == wanted.what) {
      if (one_of_many) at += t.request * all / work_.problem().batch;
      break;
    }
    if (work_.uses_scratch(op, t, o)) at += all;
  }
  return placed(at, type_of(work_.problem(), wanted.what, format), part_shape(wanted, t));
}

void local_operations::bring_to_place(stream_id stream, const operation& op, const tile& t) {
  if (op.kind == op_kind::attention && t.adds_rows) {
    const auto& o = find(op.writes, tensor::o);
    const auto& lse = find(op.writes, tensor::lse);
    return device_.merge(stream, part_shape(o, t), part(o, t), part(lse, t), in_scratch(op, t, o),
                         in_scratch(op, t, lse));
  }
  for (const auto& o : op.writes) {
    if (!work_.uses_scratch(op, t, o)) continue;
    if (is_key_side(o.what) ? t.adds_cols : t.adds_rows) {
      device_.accumulate(stream, part_shape(o, t), part(o, t), in_scratch(op, t, o));
    } else {
      device_.cast(stream, part_shape(o, t), part(o, t), in_scratch(op, t, o));
    }
  }
}

// --- What surrounds it ----------------------------------------------------------------------------

std::vector<device_tensor> local_operations::partials(const operands& list, tensor what) const {
  std::vector<device_tensor> result;
  for (const auto& o : list) {
    if (o.what != what) continue;
    const int copies = o.at.copies != 0 ? work_.program().slot_count(o) : 1;
    for (int i = 0; i < copies; ++i) {
      result.push_back(tokens_from(whole(o), i * slot_tokens(o)));
    }
  }
  return result;
}

/// Rounded once where the partial results are fp32 and disposable, else at every step.
void local_operations::merge(stream_id stream, const operation& op) {
  const auto& o = find(op.writes, tensor::o);
  const auto& lse = find(op.writes, tensor::lse);
  const auto parts = partials(op.reads, tensor::o), statistics = partials(op.reads, tensor::lse);
  const bool in_place = work_.merges_in_place(op);
  const auto sum = in_place ? parts.at(0) : whole(o);
  if (!in_place) device_.cast(stream, shape(o), sum, parts.at(0));
  device_.cast(stream, shape(lse), whole(lse), statistics.at(0));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    device_.merge(stream, shape(o), sum, whole(lse), parts[i], statistics.at(i));
  }
  if (in_place) device_.cast(stream, shape(o), whole(o), sum);
}

void local_operations::weigh(stream_id stream, const operation& op) {
  const auto& o = find(op.writes, tensor::o);
  const auto& lse = find(op.reads, tensor::lse);
  const auto& grid = work_.program().grid;
  device_.weigh(stream, shape(o), whole(o), whole(lse), grid.extent_of(lse.at.copies),
                grid.place_in_group(rank_, lse.at.copies), whole(find(op.writes, tensor::lse)));
}

void local_operations::sink(stream_id stream, const operation& op) {
  const auto& o = find(op.writes, tensor::o);
  auto sinks = whole(find(op.reads, tensor::sinks));
  sinks.view.token_stride = 0;
  device_.sink(stream, shape(o), whole(o), whole(find(op.writes, tensor::lse)), sinks,
               work_.program().grid.extent_of(op.axes));
}

void local_operations::expand(stream_id stream, const operation& op) {
  const auto& a = work_.problem();
  const auto& k = find(op.writes, tensor::k);
  device_.expand(stream,
                 {.batch = a.batch,
                  .count = token_count(k),
                  .kv_heads = heads(k).keys,
                  .head_dim = a.head_dim,
                  .v_head_dim = a.value_dim(),
                  .rank = a.latent_rank,
                  .rotary = a.rotary},
                 whole(find(op.reads, tensor::latent)), whole(find(op.reads, tensor::expansion)),
                 whole(k), whole(find(op.writes, tensor::v)));
}

void local_operations::accumulate(stream_id stream, const operation& op) {
  for (const auto& sum : op.writes) {
    bool first = true;
    for (const auto& o : op.reads) {
      auto added = shape(sum);
      const auto& b = work_.program().buffer_of(o);
      if (b.tail || b.kept) added.tokens = slot_tokens(o);
      const auto into = tokens_from(whole(sum), b.tail ? token_count(sum) - added.tokens : 0);
      for (const auto& part : partials({o}, sum.what)) {
        std::exchange(first, false) ? device_.cast(stream, added, into, part)
                                    : device_.accumulate(stream, added, into, part);
      }
    }
  }
}

void local_operations::delta(stream_id stream, const operation& op) {
  const auto& o = find(op.reads, tensor::o);
  device_.delta(stream, shape(o), whole(o), whole(find(op.reads, tensor::d_o)),
                whole(find(op.writes, tensor::delta)));
}

void local_operations::copy(stream_id stream, std::size_t op) {
  const auto& o = work_.program().program[op];
  for (std::size_t i = 0; i < o.writes.size(); ++i) {
    const auto& into = o.writes[i];
    const auto& from = find(o.reads, into.what);
    const auto target = work_.program().buffer_of(into).heads;
    const auto source = work_.program().buffer_of(from).heads;
    if (target != source) {
      target == head_form::dealt ? deal(stream, from, into) : collect(stream, from, into);
      continue;
    }
    for (const auto& m : moves_.at(op)[i]) {
      auto moved = shape(into);
      moved.tokens = m.count;
      device_.cast(stream, moved, tokens_from(whole(into), m.to_first, m.to_step),
                   tokens_from(whole(from), m.from_first, m.from_step));
    }
  }
}

token_shape local_operations::share_shape(const operand& dealt, int slot) const {
  return shape_of(work_.problem(), dealt.what, head_count(dealt.what, heads(dealt, slot)),
                  slot_tokens(dealt));
}

device_tensor local_operations::share_in(const operand& dealt, int slot) const {
  return tokens_from(whole(dealt), slot * slot_tokens(dealt));
}

device_tensor local_operations::share_among(const operand& all, const operand& dealt,
                                            int slot) const {
  const auto first = first_head(all.what, heads(dealt, slot)) - first_head(all.what, heads(all));
  return heads_from(whole(all), first);
}

/// Of shares of one size, none a copy of another.
std::optional<local_operations::all_shares> local_operations::shares_at_once(
    const operand& all, const operand& dealt) const {
  const int slots = work_.program().slot_count(dealt);
  const auto room = heads_of_slot(dealt), first = first_head(dealt.what, heads(dealt, 0));
  for (int slot = 0; slot < slots; ++slot) {
    const auto own = heads(dealt, slot);
    if (head_count(dealt.what, own) != room || first_head(dealt.what, own) != first + slot * room)
      return {};
  }
  auto shape = share_shape(dealt, 0);
  auto apart = share_in(dealt, 0), among = share_among(all, dealt, 0);
  apart.view.token_stride =
      std::exchange(apart.view.batch_stride, shape.tokens * apart.view.token_stride);
  among.view.token_stride = std::exchange(among.view.batch_stride, room * among.view.head_stride);
  shape.tokens *= std::exchange(shape.batch, slots);
  return all_shares{shape, apart, among};
}

void local_operations::deal(stream_id stream, const operand& from, const operand& into) {
  if (const auto all = shares_at_once(from, into))
    return device_.cast(stream, all->shape, all->apart, all->among);
  for (int slot = 0; slot < work_.program().slot_count(into); ++slot) {
    device_.cast(stream, share_shape(into, slot), share_in(into, slot),
                 share_among(from, into, slot));
  }
}

/// Shares that are copies of one key head hold parts of its gradient.
void local_operations::collect(stream_id stream, const operand& from, const operand& into) {
  if (const auto all = shares_at_once(into, from))
    return device_.cast(stream, all->shape, all->among, all->apart);
  const auto first = [&](int slot) { return first_head(into.what, heads(from, slot)); };
  for (int slot = 0; slot < work_.program().slot_count(from); ++slot) {
    const auto target = share_among(into, from, slot);
    if (slot > 0 && first(slot) == first(slot - 1)) {
      device_.accumulate(stream, share_shape(from, slot), target, share_in(from, slot));
    } else {
      device_.cast(stream, share_shape(from, slot), target, share_in(from, slot));
    }
  }
}

}  // namespace attnsim::validate
