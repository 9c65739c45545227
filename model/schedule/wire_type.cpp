#include "model/schedule/wire_type.hpp"

#include <algorithm>
#include <map>

#include "model/schedule/slots.hpp"

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
      for (const auto& o : op.writes) cast_.remove(s_, o);
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
      if (!cast_.has(s_, o)) {
        from.push_back(o);
        to.push_back(cast);
        cast_.add(s_, o);
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

  schedule s_;
  std::vector<operation> program_;
  bool wide_at_home_;
  operands inputs_;
  std::map<int, int> casts_;  ///< by buffer
  slot_set cast_;             ///< whose casts are of what they hold
};

}  // namespace

schedule with_wire_type(schedule s, const attention& a) {
  if (!a.wire_dtype || *a.wire_dtype == a.dtype) return s;
  return casting(std::move(s), a.dtype == data_type::fp8).run();
}

}  // namespace attnsim
