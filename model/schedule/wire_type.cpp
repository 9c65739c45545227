#include "model/schedule/wire_type.hpp"

#include <algorithm>
#include <map>

#include "model/schedule/slots.hpp"

namespace attnsim {
namespace {

data_type wire_of(const attention& a) {
  return a.wire_dtype.value_or(a.dtype);
}

/// Writes a program anew, with casts in it.
class casting {
 public:
  casting(schedule s, const attention& a)
      : s_(std::move(s)),
        program_(std::move(s_.program)),
        wide_at_home_(a.dtype == data_type::fp8),
        casts_inputs_(wire_of(a) != a.dtype),
        casts_latents_(wire_of(a) != result_type(a.dtype)) {
    s_.program.clear();
    mark_what_travels();
  }

  schedule run() {
    for (auto& op : program_) {
      if (is_communication(op.kind)) cast_reads(op, precision::wire);
      if (is_kernel(op.kind) || op.kind == op_kind::expand) cast_reads(op, precision::storage);
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

  bool is_cast(tensor t) const {
    return t == tensor::latent ? casts_latents_ : is_input(t) && casts_inputs_;
  }

  /// Latents are at home as the layer has them.
  void mark(const operand& o, bool travels) {
    if (!is_cast(o.what)) return;
    const bool home = is_input_of_pass(o), wide = wide_at_home_ && is_input(o.what);
    if (home ? wide : travels) buffer_of(o).format = precision::wire;
  }

  /// Lets the operation read casts of its inputs that have another format.
  void cast_reads(operation& op, precision wanted) {
    operands from, to;
    for (auto& o : op.reads) {
      if (!is_cast(o.what) || buffer_of(o).format == wanted) continue;
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
  bool wide_at_home_, casts_inputs_, casts_latents_;
  operands inputs_;
  std::map<int, int> casts_;  ///< by buffer
  slot_set cast_;             ///< whose casts are of what they hold
};

}  // namespace

schedule with_wire_type(schedule s, const attention& a) {
  const bool may_differ = wire_of(a) != a.dtype || a.latent_rank > 0;
  if (!may_differ) return s;
  return casting(std::move(s), a).run();
}

}  // namespace attnsim
