#include "model/schedule/schedule.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>

#include "model/named.hpp"
#include "model/schedule/slots.hpp"

namespace attnsim {
namespace {

constexpr name_table<tensor, 13> tensor_names{{{tensor::q, "q"},
                                               {tensor::k, "k"},
                                               {tensor::v, "v"},
                                               {tensor::o, "o"},
                                               {tensor::lse, "lse"},
                                               {tensor::d_o, "d_o"},
                                               {tensor::delta, "delta"},
                                               {tensor::d_q, "d_q"},
                                               {tensor::d_k, "d_k"},
                                               {tensor::d_v, "d_v"},
                                               {tensor::sinks, "sinks"},
                                               {tensor::latent, "latent"},
                                               {tensor::expansion, "expansion"}}};

constexpr name_table<op_kind, 14> kinds{{{op_kind::attention, "attention"},
                                         {op_kind::attention_backward, "attention_backward"},
                                         {op_kind::merge, "merge"},
                                         {op_kind::weigh, "weigh"},
                                         {op_kind::sink, "sink"},
                                         {op_kind::accumulate, "accumulate"},
                                         {op_kind::delta, "delta"},
                                         {op_kind::expand, "expand"},
                                         {op_kind::copy, "copy"},
                                         {op_kind::shift, "shift"},
                                         {op_kind::transpose, "transpose"},
                                         {op_kind::all_gather, "all_gather"},
                                         {op_kind::reduce_scatter, "reduce_scatter"},
                                         {op_kind::all_to_all, "all_to_all"}}};

int one_axis(axis_set axes) {
  for (int a = 0; a < position::max_axes; ++a) {
    if (axes == only(a)) return a;
  }
  throw std::logic_error("slots are named along one axis");
}

/// Calls f(buffer, slot) for every slot of a list of operands.
template <typename F>
void for_each_slot(const schedule& s, const operands& list, F f) {
  for (const auto& o : list) for_each_slot(s, o, [&](int slot) { f(o.buffer, slot); });
}

// --- Sharing of memory: chunks that are never needed at the same time get the same buffer. --------------------------

struct lifetime {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;
};

std::vector<lifetime> lifetimes(const schedule& s) {
  std::vector<lifetime> result(s.buffers.size());
  for (std::size_t i = 0; i < s.program.size(); ++i) {
    for (const auto* list : {&s.program[i].reads, &s.program[i].writes}) {
      for (const auto& o : *list) {
        auto& life = result[static_cast<std::size_t>(o.buffer)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      }
    }
  }
  return result;
}

int home_of(int rank, const position& at, const rank_grid& grid) {
  for (int a = 0; a < grid.axes(); ++a) {
    if (const int d = at.shift[static_cast<std::size_t>(a)]; d != 0)
      rank = grid.shifted(rank, a, d);
  }
  return rank;
}

int shifted(int rank, axis_set axes, int distance, const rank_grid& grid) {
  for (int a = 0; a < grid.axes(); ++a) {
    if (axes & only(a)) rank = grid.shifted(rank, a, distance);
  }
  return rank;
}

}  // namespace

/// Renames buffers, but caches filled chunk by chunk, so that each reuses the memory that has been free the longest.
void share_buffers(schedule& s) {
  const auto lives = lifetimes(s);
  std::vector<std::vector<int>> starting(s.program.size()), ending(s.program.size());
  std::vector<int> renamed(s.buffers.size(), -1);
  std::vector<buffer> kept;
  for (std::size_t b = 0; b < s.buffers.size(); ++b) {
    const auto& life = lives[b];
    const bool shareable = !s.buffers[b].resident && !s.buffers[b].relative;
    if (!shareable) {
      renamed[b] = static_cast<int>(kept.size());
      kept.push_back(s.buffers[b]);
    } else if (life.first <= life.last) {
      starting[life.first].push_back(static_cast<int>(b));
      ending[life.last].push_back(static_cast<int>(b));
    }
  }
  using form = std::tuple<tensor, precision, axis_set, head_form, bool, bool>;
  std::map<form, std::vector<int>> free;  // oldest first
  const auto form_of = [](const buffer& b) {
    return form{b.what, b.format, b.slots, b.heads, b.tail, b.kept};
  };
  for (std::size_t i = 0; i < s.program.size(); ++i) {
    for (const int b : starting[i]) {
      const auto& wanted = s.buffers[static_cast<std::size_t>(b)];
      auto& available = free[form_of(wanted)];
      auto& name = renamed[static_cast<std::size_t>(b)];
      if (available.empty()) {
        name = static_cast<int>(kept.size());
        kept.push_back(wanted);
      } else {
        name = available.front();
        available.erase(available.begin());
      }
    }
    for (const int b : ending[i]) {
      const auto& done = s.buffers[static_cast<std::size_t>(b)];
      free[form_of(done)].push_back(renamed[static_cast<std::size_t>(b)]);
    }
  }
  s.buffers = std::move(kept);
  for (auto& op : s.program) {
    for (auto* list : {&op.reads, &op.writes}) {
      for (auto& o : *list) o.buffer = renamed[static_cast<std::size_t>(o.buffer)];
    }
  }
}

std::string_view name_of(tensor t) {
  return find_name(tensor_names, t);
}
std::string_view name_of(op_kind kind) {
  return find_name(kinds, kind);
}

std::vector<tensor> results_of(pass_kind pass) {
  if (pass == pass_kind::forward) return {tensor::o, tensor::lse};
  return {tensor::d_q, tensor::d_k, tensor::d_v};
}

operands inputs_of(const schedule& s) {
  operands result;
  std::vector<bool> known(s.buffers.size());
  for (const auto& op : s.program) {
    for (const auto& o : op.reads) {
      const auto b = static_cast<std::size_t>(o.buffer);
      if (s.buffers[b].resident && !known[b]) result.push_back(o);
      known[b] = true;
    }
    for (const auto& o : op.writes) known[static_cast<std::size_t>(o.buffer)] = true;
  }
  return result;
}

int schedule::chunk_of(int rank, token_side side) const {
  if (whole_queries && side == token_side::queries) return 0;
  if (!column_major_chunks) return rank / tensor_parallel;
  const int column_major = grid.coordinate(rank, 1) * grid.extent(0) + grid.coordinate(rank, 0);
  return column_major * grid.extent_of(head_axis) + grid.place_in_group(rank, head_axis);
}

int schedule::chunk_of_slot(int home, const operand& o) const {
  const bool share = buffer_of(o).heads == head_form::share;
  return chunk_of(share ? grid.first_in_group(home, head_axis) : home, side_of(o.what));
}

int schedule::first_chunk(int rank, const operand& o) const {
  const int home = grid.first_in_group(home_of(rank, o.at, grid), o.at.gathered);
  return chunk_of_slot(o.at.transposed ? grid.transposed(home) : home, o);
}

std::vector<int> schedule::first_chunks(int rank, const operand& o) const {
  const int home = home_of(rank, o.at, grid);
  std::vector<int> homes;
  if (o.at.gathered != 0) {
    homes = grid.group(home, o.at.gathered);
  } else if (o.at.copies != 0) {
    homes.assign(static_cast<std::size_t>(grid.extent_of(o.at.copies)), home);
  } else if (o.slots == 1) {
    homes = {home};
  } else {
    const int axis = one_axis(buffer_of(o).slots);
    for (int i = 0; i < o.slots; ++i) homes.push_back(grid.shifted(home, axis, i));
  }
  for (auto& h : homes) h = chunk_of_slot(o.at.transposed ? grid.transposed(h) : h, o);
  return homes;
}

std::vector<int> schedule::chunks(int rank, const operand& o) const {
  std::vector<int> all;
  for (const int first : first_chunks(rank, o)) {
    for (int i = 0; i < chunks_in_slot(buffer_of(o).heads); ++i) all.push_back(first + i);
  }
  return all;
}

int schedule::slot_count(const operand& o) const {
  if (o.at.gathered != 0) return grid.extent_of(o.at.gathered);
  return o.at.copies != 0 ? grid.extent_of(o.at.copies) : o.slots;
}

int schedule::memory_slot(int rank, const operand& o) const {
  const auto& b = buffer_of(o);
  if (o.at.gathered != 0 || o.at.copies != 0 || b.slots == 0) return 0;
  const int extent = grid.extent_of(b.slots);
  if (b.relative) return wrapped(o.first_slot, extent);
  return wrapped(grid.coordinate(rank, one_axis(b.slots)) + o.first_slot, extent);
}

int schedule::send_peer(const operation& op, int rank) const {
  return op.kind == op_kind::transpose ? grid.transposed(rank)
                                       : shifted(rank, op.axes, op.distance, grid);
}

int schedule::receive_peer(const operation& op, int rank) const {
  return op.kind == op_kind::transpose ? grid.transposed(rank)
                                       : shifted(rank, op.axes, -op.distance, grid);
}

schedule_builder::schedule_builder(std::string name, rank_grid grid, pass_kind pass) {
  result_.name = std::move(name);
  result_.grid = std::move(grid);
  result_.pass = pass;
  result_.streams = {"compute"};
}

int schedule_builder::stream(const std::string& name) {
  result_.streams.push_back(name);
  return static_cast<int>(result_.streams.size()) - 1;
}

int schedule_builder::new_buffer(buffer b) {
  result_.buffers.push_back(b);
  return static_cast<int>(result_.buffers.size()) - 1;
}

void schedule_builder::use_whole_queries(axis_set axis) {
  result_.whole_queries = true;
  result_.head_axis = axis;
}

operands schedule_builder::own(const std::vector<tensor>& list, precision format, position at,
                               head_form heads) {
  operands result;
  for (const auto t : list) {
    const int b = new_buffer({.what = t, .format = format, .resident = true, .heads = heads});
    result.push_back({b, 0, 1, t, at});
  }
  return result;
}

operands schedule_builder::chunk(const std::vector<tensor>& list, position at, precision format,
                                 head_form heads) {
  operands result;
  for (const auto t : list) {
    const int b = new_buffer({.what = t, .format = format, .heads = heads});
    result.push_back({b, 0, 1, t, at});
  }
  return result;
}

operands schedule_builder::tails(const operands& chunks) {
  for (const auto& o : chunks) result_.buffers[static_cast<std::size_t>(o.buffer)].tail = true;
  return chunks;
}

operands schedule_builder::kept(const operands& chunks) {
  for (const auto& o : chunks) result_.buffers[static_cast<std::size_t>(o.buffer)].kept = true;
  return chunks;
}

operands schedule_builder::gathered(const std::vector<tensor>& list, axis_set axes, position at,
                                    precision format, head_form heads) {
  if (at.copies == 0) at.gathered |= axes;
  operands result;
  for (const auto t : list) {
    const int b = new_buffer({.what = t, .format = format, .slots = axes, .heads = heads});
    result.push_back({b, 0, result_.grid.extent_of(axes), t, at});
  }
  return result;
}

operands schedule_builder::cache(const std::vector<tensor>& list, int axis, position at,
                                 precision format) {
  operands result;
  for (const auto t : list) {
    const int b = new_buffer({.what = t, .format = format, .slots = only(axis), .relative = true});
    result.push_back({b, 0, result_.grid.extent(axis), t, at});
  }
  return result;
}

bool schedule_builder::all_in(const operands& list, precision format) const {
  return std::all_of(list.begin(), list.end(), [&](const operand& o) {
    return is_statistic(o.what) ||
           result_.buffers[static_cast<std::size_t>(o.buffer)].format == format;
  });
}

void schedule_builder::add(op_kind kind, int stream, operands reads, operands writes, axis_set axes,
                           int distance) {
  result_.program.push_back(
      {kind, stream, axes, distance, std::move(reads), std::move(writes), {}});
}

schedule schedule_builder::finish() {
  share_buffers(result_);
  derive_needs(result_);
  return std::move(result_);
}

void derive_needs(schedule& s) {
  struct slot_use {
    std::vector<std::uint32_t> written, read;  // per stream: position after the last such operation
  };
  const auto streams = s.streams.size();
  const std::vector<std::uint32_t> none(streams, 0);
  std::vector<std::vector<slot_use>> uses;  // by buffer and slot
  for (const auto& b : s.buffers) {
    const auto slots = static_cast<std::size_t>(s.grid.extent_of(b.slots));
    uses.emplace_back(slots, slot_use{none, none});
  }
  auto issued = none;
  const auto raise = [](std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& from) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
  };
  const auto use_of = [&](int buffer, int slot) -> slot_use& {
    return uses[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(slot)];
  };
  for (auto& op : s.program) {
    op.needs = none;
    for_each_slot(s, op.reads, [&](int b, int slot) { raise(op.needs, use_of(b, slot).written); });
    for_each_slot(s, op.writes, [&](int b, int slot) {
      raise(op.needs, use_of(b, slot).written);
      raise(op.needs, use_of(b, slot).read);
    });
    const auto stream = static_cast<std::size_t>(op.stream);
    op.needs[stream] = 0;  // the stream's own order sees to it
    const auto position = ++issued[stream];
    for_each_slot(s, op.reads, [&](int b, int slot) { use_of(b, slot).read[stream] = position; });
    for_each_slot(s, op.writes, [&](int b, int slot) {
      auto& use = use_of(b, slot);
      use.written = use.read = none;
      use.written[stream] = position;
    });
  }
}

operands slot_of(const operands& gathered, int axis, int slot, int slots) {
  auto result = gathered;
  for (auto& o : result) {
    o.first_slot += slot;
    o.slots = slots;
    o.at.gathered &= ~only(axis);
    o.at.shift[static_cast<std::size_t>(axis)] += slot;
  }
  return result;
}

const operand& find(const operands& list, tensor what) {
  return *std::find_if(list.begin(), list.end(), [&](const operand& o) { return o.what == what; });
}

bool contains(const operands& list, tensor what) {
  return std::any_of(list.begin(), list.end(), [&](const operand& o) { return o.what == what; });
}

bool changes_format(const schedule& s, const operation& op) {
  return s.buffer_of(op.reads.front()).format != s.buffer_of(op.writes.front()).format;
}

operands operator+(operands a, const operands& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace attnsim
