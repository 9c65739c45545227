#include "model/schedule_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace attnsim {
namespace {

/// What one slot of a buffer holds: a chunk of a tensor and, for results, the chunks of the other side summed into it.
struct content {
  tensor what{};
  int chunk = -1;
  bool ascending = false;
  std::vector<bool> summed;

  bool complete() const {
    return std::all_of(summed.begin(), summed.end(), [](bool b) { return b; });
  }
};

using contents = std::vector<content>;

class named_execution {
 public:
  explicit named_execution(const schedule& s)
      : s_(s), memory_(static_cast<std::size_t>(s.grid.ranks())) {
    for (auto& rank : memory_) rank.resize(s.buffers.size());
    load_inputs();
  }

  void run() {
    for (number_ = 0; number_ < s_.program.size(); ++number_) execute(s_.program[number_]);
    verify_results();
  }

 private:
  int ranks() const { return s_.grid.ranks(); }

  [[noreturn]] void fail(int rank, const std::string& what) const {
    const auto kind = number_ < s_.program.size() ? name_of(s_.program[number_].kind) : "end";
    throw std::logic_error(
        fmt::format("{}: operation {} ({}), rank {}: {}", s_.name, number_, kind, rank, what));
  }

  bool is_result(const buffer& b) const {
    if (s_.pass == pass_kind::forward) return b.what == tensor::o || b.what == tensor::lse;
    return b.what == tensor::d_q || b.what == tensor::d_k || b.what == tensor::d_v;
  }

  /// Resident buffers that some operation reads before any writes them are inputs.
  void load_inputs() {
    std::vector<bool> written(s_.buffers.size());
    for (const auto& op : s_.program) {
      for (const auto& o : op.reads) {
        const auto b = static_cast<std::size_t>(o.buffer);
        if (!s_.buffers[b].resident || written[b]) continue;
        for (int rank = 0; rank < ranks(); ++rank) put(rank, o, inputs(rank, o));
      }
      for (const auto& o : op.writes) written[static_cast<std::size_t>(o.buffer)] = true;
    }
  }

  contents inputs(int rank, const operand& o) const {
    contents result;
    for (const int chunk : s_.chunks(rank, o))
      result.push_back({o.what, chunk, o.at.ascending, {}});
    return result;
  }

  std::vector<std::optional<content>>& slots(int rank, int buffer) {
    auto& all = memory_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
    all.resize(static_cast<std::size_t>(
        s_.grid.extent_of(s_.buffers[static_cast<std::size_t>(buffer)].slots)));
    return all;
  }

  void put(int rank, const operand& o, const contents& list) {
    const auto expected = s_.chunks(rank, o);
    auto& all = slots(rank, o.buffer);
    const auto first = static_cast<std::size_t>(s_.memory_slot(rank, o));
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].chunk != expected[i]) {
        fail(rank, fmt::format("gets chunk {} of {}, expects {}", list[i].chunk, name_of(o.what),
                               expected[i]));
      }
      all.at((first + i) % all.size()) = list[i];
    }
  }

  contents get(int rank, const operand& o) {
    contents result;
    auto& all = slots(rank, o.buffer);
    const auto first = static_cast<std::size_t>(s_.memory_slot(rank, o));
    for (const int chunk : s_.chunks(rank, o)) {
      const auto& held = all.at((first + result.size()) % all.size());
      if (!held || held->what != o.what || held->chunk != chunk ||
          held->ascending != o.at.ascending) {
        fail(rank,
             fmt::format("reads chunk {} of {}, finds {}", chunk, name_of(o.what),
                         held ? fmt::format("chunk {} of {}", held->chunk, name_of(held->what))
                              : "nothing"));
      }
      result.push_back(*held);
    }
    return result;
  }

  void add(int rank, std::vector<bool>& sum, const std::vector<bool>& part) const {
    sum.resize(static_cast<std::size_t>(ranks()));
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] && sum[i]) fail(rank, fmt::format("counts chunk {} twice", i));
      if (part[i]) sum[i] = true;
    }
  }

  std::vector<bool> set_of(const std::vector<int>& chunks) const {
    std::vector<bool> result(static_cast<std::size_t>(ranks()));
    for (const int c : chunks) result[static_cast<std::size_t>(c)] = true;
    return result;
  }

  void execute(const operation& op) {
    switch (op.kind) {
      case op_kind::attention:
      case op_kind::attention_backward:
        return for_all([&](int rank) { attend(op, rank); });
      case op_kind::merge:
      case op_kind::accumulate:
        return for_all([&](int rank) { combine(op, rank); });
      case op_kind::delta:
        return for_all([&](int rank) { put(rank, op.writes[0], inputs(rank, op.writes[0])); });
      case op_kind::copy:
        return for_all([&](int rank) { copy(op, rank); });
      default:
        return communicate(op);
    }
  }

  template <typename F>
  void for_all(F f) {
    for (int rank = 0; rank < ranks(); ++rank) f(rank);
  }

  void attend(const operation& op, int rank) {
    for (const auto& o : op.reads) get(rank, o);
    const auto rows = set_of(s_.chunks(rank, find(op.reads, tensor::q)));
    const auto cols = set_of(s_.chunks(rank, find(op.reads, tensor::k)));
    for (const auto& o : op.writes) {
      auto sums = contains(op.reads, o.what) ? get(rank, o) : inputs(rank, o);
      for (auto& c : sums) add(rank, c.summed, is_key_side(o.what) ? rows : cols);
      put(rank, o, sums);
    }
  }

  void combine(const operation& op, int rank) {
    for (const auto& into : op.writes) {
      contents sums = inputs(rank, into);
      for (const auto& from : op.reads) {
        if (from.what != into.what) continue;
        const auto parts = get(rank, from);
        for (std::size_t i = 0; i < parts.size(); ++i) {
          auto& sum = sums[from.at.copies != 0 ? 0 : i];
          if (parts[i].chunk != sum.chunk) fail(rank, "adds different chunks");
          add(rank, sum.summed, parts[i].summed);
        }
      }
      put(rank, into, sums);
    }
  }

  void copy(const operation& op, int rank) {
    for (const auto& into : op.writes) {
      const auto source = get(rank, find(op.reads, into.what));
      contents moved;
      for (const int chunk : s_.chunks(rank, into)) {
        const auto found = std::find_if(source.begin(), source.end(),
                                        [&](const content& c) { return c.chunk == chunk; });
        if (found == source.end())
          fail(rank, fmt::format("copies chunk {}, which is not in the source", chunk));
        moved.push_back(*found);
        moved.back().ascending = into.at.ascending;
      }
      put(rank, into, moved);
    }
  }

  void communicate(const operation& op) {
    std::vector<std::vector<contents>> sent(static_cast<std::size_t>(ranks()));
    for_all([&](int rank) {
      for (const auto& o : op.reads) sent[static_cast<std::size_t>(rank)].push_back(get(rank, o));
    });
    for_all([&](int rank) {
      for (std::size_t i = 0; i < op.writes.size(); ++i)
        put(rank, op.writes[i], received(op, rank, i, sent));
    });
  }

  contents received(const operation& op, int rank, std::size_t item,
                    const std::vector<std::vector<contents>>& sent) const {
    const auto from = [&](int peer) -> const contents& {
      return sent[static_cast<std::size_t>(peer)][item];
    };
    if (!is_collective(op.kind)) return from(s_.receive_peer(op, rank));
    contents result;
    const auto place = static_cast<std::size_t>(s_.grid.place_in_group(rank, op.axes));
    for (const int peer : s_.grid.group(rank, op.axes)) {
      if (op.kind == op_kind::all_gather) {
        result.insert(result.end(), from(peer).begin(), from(peer).end());
      } else if (op.kind == op_kind::all_to_all || result.empty()) {
        result.push_back(from(peer)[place]);
      } else {
        add(rank, result[0].summed, from(peer)[place].summed);
      }
    }
    return result;
  }

  void verify_results() {
    for (std::size_t b = 0; b < s_.buffers.size(); ++b) {
      if (!s_.buffers[b].resident || !is_result(s_.buffers[b])) continue;
      for_all([&](int rank) {
        const auto& held = slots(rank, static_cast<int>(b))[0];
        const auto what = name_of(s_.buffers[b].what);
        if (!held) fail(rank, fmt::format("has no {}", what));
        if (held->chunk != s_.chunk_of(rank))
          fail(rank, fmt::format("holds another rank's {}", what));
        if (!held->complete() || held->summed.empty())
          fail(rank, fmt::format("holds an incomplete {}", what));
      });
    }
  }

  const schedule& s_;
  std::vector<std::vector<std::vector<std::optional<content>>>> memory_;  ///< [rank][buffer][slot]
  std::size_t number_ = 0;
};

}  // namespace

void check(const schedule& s) {
  named_execution(s).run();
}

}  // namespace attnsim
