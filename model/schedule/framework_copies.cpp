#include "model/schedule/framework_copies.hpp"

#include <algorithm>

#include "model/named.hpp"

namespace attnsim {
namespace {

using joining = framework_copies::joining;

constexpr name_table<joining, 3> joinings{
    {{joining::none, "none"}, {joining::first, "first"}, {joining::every, "every"}}};

bool share_a_buffer(const operands& some, const operands& others) {
  return std::any_of(some.begin(), some.end(), [&](const operand& o) {
    return std::any_of(others.begin(), others.end(),
                       [&](const operand& other) { return o.buffer == other.buffer; });
  });
}

bool are_pair(const operands& list) {
  return (contains(list, tensor::k) && contains(list, tensor::v)) ||
         (contains(list, tensor::d_k) && contains(list, tensor::d_v));
}

/// Writes a program anew, with copies in it.
class copying {
 public:
  copying(schedule s, const framework_copies& wanted, const attention& a)
      : s_(std::move(s)),
        program_(std::move(s_.program)),
        wanted_(wanted),
        copies_received_(wanted.received || (wanted.batched && a.batch > 1)),
        has_prefix_(a.prefix > 0) {}

  schedule run() {
    s_.program.clear();
    for (std::size_t i = 0; i < program_.size(); ++i) {
      auto op = program_[i];
      if (is_copied_before(i)) add_copy(program_[i].reads, op.reads = like(op.reads));
      const bool copies_result = is_copied_after(i);
      if (copies_result) op.writes = like(op.writes);
      add_exchange(op);
      if (copies_result) add_copy(op.writes, program_[i].writes);
    }
    derive_needs(s_);
    return std::move(s_);
  }

 private:
  bool is_copied_before(std::size_t i) const {
    const auto& op = program_[i];
    if (op.kind == op_kind::shift || op.kind == op_kind::all_gather) return is_joined(op);
    if (op.kind == op_kind::reduce_scatter) return wanted_.scattered && !was_copied(i);
    return wanted_.returned && exchanges_heads(op) && holds_shares(op.reads);
  }

  bool is_copied_after(std::size_t i) const {
    const auto& op = program_[i];
    if (op.kind == op_kind::all_gather)
      return wanted_.gathered && op.axes != s_.head_axis && !will_be_copied(i);
    return copies_received_ && exchanges_heads(op) && holds_shares(op.writes) &&
           !(has_prefix_ && contains(op.writes, tensor::k));
  }

  bool is_joined(const operation& op) const {
    if (wanted_.joined == joining::none || !are_pair(op.reads)) return false;
    const bool sends_own = op.kind == op_kind::shift &&
                           std::all_of(op.reads.begin(), op.reads.end(),
                                       [&](const operand& o) { return s_.buffer_of(o).resident; });
    return sends_own || wanted_.joined == joining::every;
  }

  bool exchanges_heads(const operation& op) const {
    return op.kind == op_kind::all_to_all && op.axes == s_.head_axis && !s_.whole_queries;
  }

  bool holds_shares(const operands& list) const {
    return s_.buffer_of(list.front()).heads == head_form::share;
  }

  /// What it reads comes from a copy.
  bool was_copied(std::size_t i) const {
    for (auto before = i; before-- > 0;) {
      if (share_a_buffer(program_[before].writes, program_[i].reads))
        return program_[before].kind == op_kind::copy;
    }
    return false;
  }

  /// What it writes goes into a copy.
  bool will_be_copied(std::size_t i) const {
    for (auto after = i + 1; after < program_.size(); ++after) {
      if (share_a_buffer(program_[after].reads, program_[i].writes))
        return program_[after].kind == op_kind::copy;
    }
    return false;
  }

  /// New buffers for the same.
  operands like(operands list) {
    for (auto& o : list) {
      auto b = s_.buffer_of(o);
      b.resident = false;
      s_.buffers.push_back(b);
      o.buffer = static_cast<int>(s_.buffers.size()) - 1;
    }
    return list;
  }

  void add_exchange(const operation& op) {
    if (!wanted_.separate || !exchanges_heads(op)) return s_.program.push_back(op);
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      s_.program.push_back(op);
      s_.program.back().reads = {op.reads[i]};
      s_.program.back().writes = {op.writes[i]};
    }
  }

  void add_copy(operands from, operands to) {
    s_.program.push_back(
        {.kind = op_kind::copy, .reads = std::move(from), .writes = std::move(to)});
  }

  schedule s_;
  std::vector<operation> program_;
  framework_copies wanted_;
  bool copies_received_;
  bool has_prefix_;
};

}  // namespace

std::string_view name_of(joining j) {
  return find_name(joinings, j);
}
joining parse_joining(std::string_view text) {
  return find_value(joinings, text);
}

schedule with_framework_copies(schedule s, const framework_copies& wanted, const attention& a) {
  if (wanted == framework_copies{} || s.whole_queries) return s;
  return copying(std::move(s), wanted, a).run();
}

}  // namespace attnsim
