#include "model/schedule/wire_type.hpp"

#include <algorithm>
#include <map>

namespace attnsim {
namespace {

/// Writes a program anew, with casts in it.
class casting {
 public:
  casting(schedule s, bool wide_at_home)
      : s_(std::move(s)), program_(std::move(s_.program)), wide_at_home_(wide_at_home) {
    s_.program.clear();
    mark_what_travels();
  }

  schedule run() {
    for (auto& op : program_) {
      if (is_communication(op.kind)) cast_reads(op, precision::wire);
      if (is_kernel(op.kind)) cast_reads(op, precision::storage);
      for (const auto& o : op.writes) forget(o);
      s_.program.push_back(std::move(op));
    }
    derive_needs(s_);
    return std::move(s_);
  }

 private:
  buffer& buffer_of(const operand& o) { return s_.buffers[static_cast<std::size_t>(o.buffer)]; }

  bool is_input_of_pass(const operand& o) const {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const operand& input) { return input.buffer == o.buffer; });
  }

  void mark_what_travels() {
    auto all = s_;
    all.program = program_;
    inputs_ = inputs_of(all);
    for (const auto& op : program_) {
      for (const auto* list : {&op.reads, &op.writes}) {
        for (const auto& o : *list) mark(o, is_communication(op.kind));
      }
    }
  }

  void mark(const operand& o, bool travels) {
    if (!is_input(o.what)) return;
    const bool home = is_input_of_pass(o);
    if (home ? wide_at_home_ : travels) buffer_of(o).format = precision::wire;
  }

  /// Lets the operation read casts of its inputs that have another format.
  void cast_reads(operation& op, precision wanted) {
    operands from, to;
    for (auto& o : op.reads) {
      if (!is_input(o.what) || buffer_of(o).format == wanted) continue;
      auto cast = o;
      cast.buffer = cast_of(o.buffer, wanted);
      if (!is_known(o)) {
        from.push_back(o);
        to.push_back(cast);
        remember(o);
      }
      o = cast;
    }
    if (!from.empty())
      s_.program.push_back(
          {.kind = op_kind::copy, .reads = std::move(from), .writes = std::move(to)});
  }

  int cast_of(int buffer, precision wanted) {
    const auto [known, is_new] = casts_.try_emplace(buffer, static_cast<int>(s_.buffers.size()));
    if (is_new) {
      auto made = s_.buffers[static_cast<std::size_t>(buffer)];
      made.format = wanted;
      made.resident = false;
      s_.buffers.push_back(made);
    }
    return known->second;
  }

  std::vector<bool>& known_slots(const operand& o) {
    auto& known = known_[o.buffer];
    known.resize(static_cast<std::size_t>(s_.grid.extent_of(buffer_of(o).slots)));
    return known;
  }
  /// Of the slots that an operand names, relative to the rank.
  std::vector<std::size_t> slots_of(const operand& o) {
    const auto extent = s_.grid.extent_of(buffer_of(o).slots);
    std::vector<std::size_t> slots;
    for (int i = 0; i < o.slots; ++i)
      slots.push_back(static_cast<std::size_t>(((o.first_slot + i) % extent + extent) % extent));
    return slots;
  }
  bool is_known(const operand& o) {
    const auto& known = known_slots(o);
    const auto slots = slots_of(o);
    return std::all_of(slots.begin(), slots.end(), [&](std::size_t i) { return known[i]; });
  }
  void remember(const operand& o) {
    for (const auto i : slots_of(o)) known_slots(o)[i] = true;
  }
  void forget(const operand& o) {
    for (const auto i : slots_of(o)) known_slots(o)[i] = false;
  }

  schedule s_;
  std::vector<operation> program_;
  bool wide_at_home_;
  operands inputs_;
  std::map<int, int> casts_;                ///< by buffer
  std::map<int, std::vector<bool>> known_;  ///< by buffer: which slots' casts are of what they hold
};

}  // namespace

schedule with_wire_type(schedule s, const attention& a) {
  if (!a.wire_dtype || *a.wire_dtype == a.dtype) return s;
  return casting(std::move(s), a.dtype == data_type::fp8).run();
}

}  // namespace attnsim
