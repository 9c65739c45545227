// The schedule: a program of operations on named blocks of Q, K, V, O, read by the model, the simulator and the executor.
//
// All ranks run the same program (SPMD). What differs between ranks is derived: an operation names its data relative to
// the rank that executes it ("the keys of the rank two further down my column"), and its peers as a shift along an axis
// of the rank grid or as a group. A schedule knows nothing of sequence lengths, masks, devices or links; byte and FLOP
// counts follow from the named data (model/cost/workload.hpp).
//
// Order: the program lists operations in launch order. Each belongs to a stream, and a stream executes in order. What an
// operation must wait for on other streams is derived from the buffers it reads and writes. A communication operation
// starts when all its participants have reached it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/attention/attention.hpp"
#include "model/schedule/grid.hpp"

namespace attnsim {

/// latent: of which a product with the expansion, which all ranks have, makes k and v (latent_keys.hpp).
enum class tensor { q, k, v, o, lse, d_o, delta, d_q, d_k, d_v, sinks, latent, expansion };

std::string_view name_of(tensor);

/// Row statistics (log-sum-exp, delta) have one fp32 number per token and query head, sinks one per query head, other tensors as many elements as a head
/// has: V, O and their gradients v_head_dim, the others head_dim.
constexpr bool is_statistic(tensor t) {
  return t == tensor::lse || t == tensor::delta || t == tensor::sinks;
}
constexpr bool has_value_dim(tensor t) {
  return t == tensor::v || t == tensor::o || t == tensor::d_o || t == tensor::d_v;
}
/// K, V, their gradients and the expansion have kv_heads heads and the keys' tokens, the latent one head, the others heads and the
/// queries' tokens.
constexpr bool is_key_side(tensor t) {
  return t == tensor::k || t == tensor::v || t == tensor::d_k || t == tensor::d_v ||
         t == tensor::latent || t == tensor::expansion;
}
/// One for all tokens.
constexpr bool is_parameter(tensor t) {
  return t == tensor::sinks || t == tensor::expansion;
}
/// What attention reads: it alone may be in fp8, or travel in another type.
constexpr bool is_input(tensor t) {
  return t == tensor::q || t == tensor::k || t == tensor::v;
}
constexpr token_side side_of(tensor t) {
  return is_key_side(t) ? token_side::keys : token_side::queries;
}

/// What a pass computes: o and lse, or d_q, d_k and d_v.
std::vector<tensor> results_of(pass_kind);

/// Which chunks of the sequence, relative to the executing rank. Rank p is the home of one chunk of every tensor.
struct position {
  static constexpr int max_axes = 5;

  std::array<int, max_axes>
      shift{};  ///< home of the chunk: the rank at own coordinates + shift, wrapping around
  axis_set gathered = 0;  ///< all chunks along these axes, in order of their coordinate
  axis_set copies = 0;    ///< partial results for one chunk from all ranks along these axes
  bool transposed =
      false;  ///< the home is at swapped coordinates: after Attention2D's grid transpose
  bool ascending = false;  ///< tokens re-ordered by position in the sequence

  friend bool operator==(const position&, const position&) = default;
};

/// Number format of a buffer's elements.
enum class precision {
  storage,  ///< the attention's data type
  fp32,     ///< accumulators
  wire,     ///< queries, keys and values in the type in which they travel (wire_type.hpp)
};

/// Which heads a buffer's slots hold, of the heads of the rank's tensor-parallel share.
enum class head_form {
  all,  ///< all, of one chunk
  share,  ///< the rank's share along the head axis, of the chunks of all ranks along it; of whole queries
  dealt,  ///< a slot a share, of one chunk: what an all-to-all along the head axis sends or receives
};

struct buffer {
  tensor what;
  precision format = precision::storage;
  axis_set slots = 0;  ///< one slot per coordinate along these axes; none: a single slot
  bool relative =
      false;  ///< slot s lies s-th in memory (slot 0 is the own chunk); else in order of the coordinate
  bool resident =
      false;  ///< the rank's own shard: an input, a result or saved for backward; held for the whole pass
  head_form heads = head_form::all;
  bool tail =
      false;  ///< of the furthest chunk that a window reaches, its last tokens (attention/halo.hpp)
  bool kept = false;  ///< of each chunk as many first tokens as a window keeps of the sequence's

  friend bool operator==(const buffer&, const buffer&) = default;
};

/// Where an operation's data is, and what it is: either all slots of a buffer (at.gathered says so), or `slots` slots
/// from first_slot of a one-axis buffer, named relative to the rank: slot s belongs to the coordinate own + s.
struct operand {
  int buffer = 0;
  int first_slot = 0;
  int slots = 1;
  tensor what{};
  position at;
  int part = 0;  ///< which of the schedule's parts of the heads (head_parts.hpp)

  friend bool operator==(const operand&, const operand&) = default;
};

using operands = std::vector<operand>;

/// An operation that also reads what it writes accumulates into it: by log-sum-exp for o and lse, else by adding.
enum class op_kind {
  attention,           ///< q, k, v -> o, lse: partial attention of the rows to these keys
  attention_backward,  ///< q, k, v, d_o, lse, delta -> d_q, d_k, d_v: the block's contributions
  merge,               ///< two or more partial (o, lse) -> (o, lse), by log-sum-exp
  weigh,  ///< partial o, lse of all parts -> o times its weight, lse of the whole: then a sum of the parts' o is the whole's
  sink,  ///< o, lse, sinks -> o, lse with the heads' sinks; over `axes`: with a part of them, which all ranks' parts make up
  accumulate,  ///< two gradients -> their sum
  delta,       ///< d_o, o -> delta: rowsum(d_o * o)
  expand,      ///< latent, expansion -> k, v
  copy,        ///< into another place, number format, slot order or token order
  shift,  ///< sends to the rank `distance` further along each of `axes`, receives from the opposite one
  transpose,       ///< exchanges with the rank at swapped coordinates; nothing on the diagonal
  all_gather,      ///< over `axes`
  reduce_scatter,  ///< over `axes`: sums, keeps the own slot
  all_to_all,      ///< over `axes`: slot i to the i-th rank of the group
};

std::string_view name_of(op_kind);
constexpr bool is_communication(op_kind kind) {
  return kind >= op_kind::shift;
}
constexpr bool is_collective(op_kind kind) {
  return kind >= op_kind::all_gather;
}
constexpr bool is_kernel(op_kind kind) {
  return kind <= op_kind::attention_backward;
}

struct operation {
  op_kind kind;
  int stream = 0;
  axis_set axes = 0;
  int distance = 0;
  operands reads;
  operands writes;
  /// Per stream: how many of its operations must be complete before this one starts. Derived, not written by hand.
  std::vector<std::uint32_t> needs;

  friend bool operator==(const operation&, const operation&) = default;
};

struct schedule {
  std::string name;
  rank_grid grid{{1}};
  pass_kind pass = pass_kind::forward;  ///< forward or backward
  bool column_major_chunks =
      false;  ///< rank (r, c) is the home of chunk c * R + r, not r * C + c (Attention2D)
  /// Queries are not cut, as when few tokens are decoded: they and their results are one chunk, of which all ranks are homes.
  /// Keys are sharded as ever.
  bool whole_queries = false;
  /// How many chunks before its own the queries of a chunk see, through a window; none: all chunks.
  std::optional<int> window_reach;
  /// First tokens that a window keeps are attended to by operations of their own, on buffers of first tokens.
  bool keeps_apart = false;
  axis_set head_axis =
      0;  ///< along it all-to-alls exchange tokens for heads; with whole queries, partial results of heads
  int tensor_parallel = 1;  ///< extent of the last axis if not 1: same tokens, each rank its heads
  int parts = 1;            ///< equal parts of the heads, one after the other (head_parts.hpp)
  std::vector<std::string> streams;  ///< stream 0 is the compute stream
  std::vector<buffer> buffers;
  std::vector<operation> program;

  /// In how many chunks the keys' tokens are: one a rank, but for tensor parallelism. The same of a side.
  int chunk_total() const { return grid.ranks() / tensor_parallel; }
  int chunk_total(token_side side) const {
    return whole_queries && side == token_side::queries ? 1 : chunk_total();
  }
  /// How many chunks a slot of this form holds.
  int chunks_in_slot(head_form form) const {
    return form == head_form::share && !whole_queries ? grid.extent_of(head_axis) : 1;
  }
  const buffer& buffer_of(const operand& o) const {
    return buffers[static_cast<std::size_t>(o.buffer)];
  }

  /// The chunk of a side of which `rank` is the home.
  int chunk_of(int rank, token_side) const;
  /// The chunks that an operand holds on `rank`, in memory order.
  std::vector<int> chunks(int rank, const operand&) const;
  /// The first chunk of each slot: a slot's chunks are consecutive. And of the first slot.
  std::vector<int> first_chunks(int rank, const operand&) const;
  int first_chunk(int rank, const operand&) const;
  /// How many slots an operand names, on every rank.
  int slot_count(const operand&) const;
  /// Where in memory an operand's first slot lies, counted in slots.
  int memory_slot(int rank, const operand&) const;

  /// The rank that `rank` sends to and the one it receives from in a shift or transpose.
  int send_peer(const operation&, int rank) const;
  int receive_peer(const operation&, int rank) const;

  friend bool operator==(const schedule&, const schedule&) = default;

 private:
  int chunk_of_slot(int home, const operand&) const;
};

/// Writes a schedule: operations are added in launch order, with as many buffers as there are chunks.
/// finish() lets those whose lifetimes do not overlap share memory, oldest free buffer first (so a chain of shifts
/// becomes double buffering), and derives what each operation waits for.
class schedule_builder {
 public:
  schedule_builder(std::string name, rank_grid grid, pass_kind pass);

  pass_kind pass() const { return result_.pass; }
  int stream(const std::string& name);
  void use_column_major_chunks() { result_.column_major_chunks = true; }
  /// Ranks along `axis` share out the heads of all queries.
  void use_whole_queries(axis_set axis);
  void use_window_reach(int chunks) { result_.window_reach = chunks; }
  void keep_apart() { result_.keeps_apart = true; }

  /// The rank's own shard of each tensor.
  operands own(const std::vector<tensor>&, precision = precision::storage, position at = {},
               head_form = head_form::all);
  /// A working chunk of each tensor; `at` says which chunk it will hold.
  operands chunk(const std::vector<tensor>&, position at, precision = precision::storage,
                 head_form = head_form::all);
  /// The same operands, whose buffers hold only the last tokens of their chunks.
  operands tails(const operands&);
  /// The same, which hold only as many first tokens as a window keeps.
  operands kept(const operands&);
  /// A buffer with one slot per coordinate along `axes` for each tensor: the chunks of a whole row or column, in order
  /// of their coordinate, as collectives leave them.
  operands gathered(const std::vector<tensor>&, axis_set axes, position at = {},
                    precision = precision::storage, head_form = head_form::all);
  /// The same filled chunk by chunk, the own chunk first.
  operands cache(const std::vector<tensor>&, int axis, position at = {},
                 precision = precision::storage);

  void add(op_kind kind, int stream, operands reads, operands writes, axis_set axes = 0,
           int distance = 0);

  /// Whether all these operands' buffers have this number format (row statistics fit any).
  bool all_in(const operands&, precision) const;

  schedule finish();

 private:
  int new_buffer(buffer);

  schedule result_;
};

/// The operands that name resident buffers before any operation writes them: what a rank starts with.
operands inputs_of(const schedule&);

/// Lets buffers whose lifetimes in the program do not overlap share memory.
void share_buffers(schedule&);

/// Sets what each operation waits for: reads wait for the last write, writes for the last write and for the reads since.
void derive_needs(schedule&);

/// Slot `slot` of gathered buffers, relative to the rank, and the `slots` - 1 that follow; one axis only.
operands slot_of(const operands& gathered, int axis, int slot, int slots = 1);

/// The operand for `what`; precondition: the list has one.
const operand& find(const operands&, tensor what);
bool contains(const operands&, tensor what);

/// What the operation writes first has another number format than what it reads first.
bool changes_format(const schedule&, const operation&);

/// The concatenation of operand lists.
operands operator+(operands a, const operands& b);

}  // namespace attnsim
