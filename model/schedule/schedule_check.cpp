#include "model/schedule/schedule_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace attnsim {
namespace {

constexpr int all_shares = -1;

/// One chunk in a slot of a buffer: of which tensor and heads, and, for results, the chunks of the other side summed into
/// it.
struct content {
  tensor what{};
  int chunk = -1;
  int share = all_shares;  ///< of the heads, along the head axis
  int part = 0;            ///< of the heads, of the schedule's parts
  bool ascending = false;
  std::vector<bool> summed;
  bool weighed = false;   ///< for a sum, not for a merge
  bool tail = false;      ///< its last tokens only
  bool first = false;     ///< its first tokens only
  bool has_kept = false;  ///< first tokens that a window keeps are in it
  int sinks = 0;          ///< parts of them that are in it
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
    const auto list = results_of(s_.pass);
    return std::find(list.begin(), list.end(), b.what) != list.end();
  }

  void load_inputs() {
    for (const auto& o : inputs_of(s_)) {
      for (int rank = 0; rank < ranks(); ++rank) put(rank, o, inputs(rank, o));
    }
  }

  contents inputs(int rank, const operand& o) const {
    contents result;
    for (const int chunk : s_.chunks(rank, o)) {
      const int share = share_of(rank, o, result.size());
      result.push_back({.what = o.what,
                        .chunk = chunk,
                        .share = share,
                        .part = o.part,
                        .ascending = o.at.ascending,
                        .summed = {},
                        .tail = s_.buffer_of(o).tail,
                        .first = s_.buffer_of(o).kept});
    }
    return result;
  }

  /// The share of an operand's i-th chunk.
  int share_of(int rank, const operand& o, std::size_t i) const {
    if (o.what == tensor::latent) return all_shares;
    switch (s_.buffer_of(o).heads) {
      case head_form::all:
        return all_shares;
      case head_form::share:
        return s_.grid.place_in_group(rank, s_.head_axis);
      case head_form::dealt:
        return static_cast<int>(i);
    }
    return all_shares;
  }

  std::size_t first_place(int rank, const operand& o) const {
    return static_cast<std::size_t>(s_.memory_slot(rank, o) *
                                    s_.chunks_in_slot(s_.buffer_of(o).heads));
  }

  std::vector<std::optional<content>>& slots(int rank, int buffer) {
    auto& all = memory_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
    const auto& b = s_.buffers[static_cast<std::size_t>(buffer)];
    all.resize(static_cast<std::size_t>(s_.grid.extent_of(b.slots) * s_.chunks_in_slot(b.heads)));
    return all;
  }

  void put(int rank, const operand& o, const contents& list) {
    const auto expected = s_.chunks(rank, o);
    auto& all = slots(rank, o.buffer);
    const auto first = first_place(rank, o);
    if (list.size() != expected.size()) fail(rank, fmt::format("gets too few {}", name_of(o.what)));
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].share != share_of(rank, o, i))
        fail(rank, fmt::format("gets heads of another share of {}", name_of(o.what)));
      if (list[i].part != o.part)
        fail(rank, fmt::format("gets another part of the heads of {}", name_of(o.what)));
      if (list[i].tail != s_.buffer_of(o).tail || list[i].first != s_.buffer_of(o).kept)
        fail(rank, fmt::format("gets another part of a chunk of {}", name_of(o.what)));
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
    const auto first = first_place(rank, o);
    for (const int chunk : s_.chunks(rank, o)) {
      const auto& held = all.at((first + result.size()) % all.size());
      if (!held || held->what != o.what || held->chunk != chunk ||
          held->share != share_of(rank, o, result.size()) || held->part != o.part ||
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
    sum.resize(static_cast<std::size_t>(s_.chunk_total()));
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] && sum[i]) fail(rank, fmt::format("counts chunk {} twice", i));
      if (part[i]) sum[i] = true;
    }
  }

  std::vector<bool> set_of(const std::vector<int>& chunks) const {
    std::vector<bool> result(static_cast<std::size_t>(s_.chunk_total()));
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
      case op_kind::sink:
        return for_all([&](int rank) { sink(op, rank); });
      case op_kind::weigh:
        return for_all([&](int rank) { weigh(op, rank); });
      case op_kind::delta:
        return for_all([&](int rank) { put(rank, op.writes[0], inputs(rank, op.writes[0])); });
      case op_kind::expand:
        return for_all([&](int rank) { expand(op, rank); });
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
    for (const auto& o : op.reads) {
      get(rank, o);
      if (o.part != op.reads.front().part) fail(rank, "attends to another part of the heads");
    }
    for (const auto& o : op.writes) {
      if (o.part != op.reads.front().part) fail(rank, "writes another part of the heads");
    }
    const auto rows = set_of(s_.chunks(rank, find(op.reads, tensor::q)));
    const auto cols = set_of(s_.chunks(rank, find(op.reads, tensor::k)));
    if (s_.buffer_of(find(op.reads, tensor::k)).tail) require_furthest(op, rank);
    const bool kept = s_.buffer_of(find(op.reads, tensor::k)).kept;
    for (const auto& o : op.writes) {
      auto sums = contains(op.reads, o.what) ? get(rank, o) : inputs(rank, o);
      for (auto& c : sums) {
        if (kept && !is_key_side(o.what)) {
          if (std::exchange(c.has_kept, true)) fail(rank, "counts kept tokens twice");
        } else {
          add(rank, c.summed, is_key_side(o.what) ? rows : cols);
        }
      }
      put(rank, o, sums);
    }
  }

  /// Only of the furthest chunk that a window reaches are the last tokens enough.
  void require_furthest(const operation& op, int rank) const {
    const int query = s_.first_chunk(rank, find(op.reads, tensor::q));
    const int key = s_.first_chunk(rank, find(op.reads, tensor::k));
    const int total = s_.chunk_total();
    if (!s_.window_reach || (query - key + total) % total != *s_.window_reach)
      fail(rank, fmt::format("attends to the last tokens of chunk {} only", key));
  }

  void combine(const operation& op, int rank) {
    for (const auto& into : op.writes) {
      contents sums = inputs(rank, into);
      for (const auto& from : op.reads) {
        if (from.what != into.what) continue;
        const auto parts = get(rank, from);
        for (std::size_t i = 0; i < parts.size(); ++i) {
          auto& sum = sums[i % sums.size()];
          if (parts[i].chunk != sum.chunk) fail(rank, "adds different chunks");
          if (parts[i].weighed) fail(rank, "merges a part that is weighed for a sum");
          sum.sinks += parts[i].sinks;
          if (parts[i].first && !sum.first) {
            add_kept(rank, sum, parts[i]);
            continue;
          }
          sum.has_kept = sum.has_kept || parts[i].has_kept;
          add(rank, sum.summed, parts[i].summed);
        }
      }
      put(rank, into, sums);
    }
  }

  /// Gradients of first tokens, to which all queries have come.
  void add_kept(int rank, content& sum, const content& part) const {
    if (std::count(part.summed.begin(), part.summed.end(), true) != s_.chunk_total())
      fail(rank, "adds gradients of first tokens of some ranks only");
    if (std::exchange(sum.has_kept, true)) fail(rank, "counts kept tokens twice");
  }

  /// In parts of all ranks along the operation's axes.
  void sink(const operation& op, int rank) {
    get(rank, find(op.reads, tensor::sinks));
    parts_of_sinks_ = s_.grid.extent_of(op.axes);
    for (const auto& o : op.writes) {
      auto list = get(rank, o);
      for (auto& c : list) ++c.sinks;
      put(rank, o, list);
    }
  }

  void weigh(const operation& op, int rank) {
    const auto statistics = get(rank, find(op.reads, tensor::lse));
    auto parts = get(rank, find(op.reads, tensor::o));
    auto whole = inputs(rank, find(op.writes, tensor::lse));
    const auto own = static_cast<std::size_t>(
        s_.grid.place_in_group(rank, find(op.reads, tensor::lse).at.copies));
    for (const auto& one : statistics) {
      add(rank, whole.front().summed, one.summed);
      whole.front().sinks += one.sinks;
    }
    if (statistics.at(own).summed != parts.front().summed)
      fail(rank, "weighs a part by another's log-sum-exp");
    parts.front().weighed = true;
    put(rank, find(op.writes, tensor::o), parts);
    put(rank, find(op.writes, tensor::lse), whole);
  }

  void expand(const operation& op, int rank) {
    get(rank, find(op.reads, tensor::expansion));
    const auto latents = get(rank, find(op.reads, tensor::latent));
    for (const auto& into : op.writes) {
      const auto made = inputs(rank, into);
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (latents.size() != made.size() || latents[i].chunk != made[i].chunk)
          fail(rank, "expands the latents of other chunks");
      }
      put(rank, into, made);
    }
  }

  void copy(const operation& op, int rank) {
    for (const auto& into : op.writes) {
      const auto source = get(rank, find(op.reads, into.what));
      contents moved;
      for (auto wanted : inputs(rank, into)) {
        wanted.summed = found_in(source, wanted, rank);
        wanted.weighed = source.front().weighed;
        wanted.sinks = source.front().sinks;
        wanted.has_kept = source.front().has_kept;
        moved.push_back(wanted);
      }
      put(rank, into, moved);
    }
  }

  /// What is summed in the source's chunk, in all of its shares where all are wanted.
  std::vector<bool> found_in(const contents& source, const content& wanted, int rank) const {
    std::vector<bool> summed;
    int shares = 0;
    for (const auto& c : source) {
      const bool fits =
          wanted.share == all_shares || c.share == all_shares || c.share == wanted.share;
      if (c.chunk != wanted.chunk || !fits || (c.tail && !wanted.tail) ||
          (c.first && !wanted.first))
        continue;
      if (shares++ == 0) summed = c.summed;
      for (std::size_t i = 0; i < summed.size(); ++i) summed[i] = summed[i] && c.summed.at(i);
    }
    const bool of_shares = wanted.share == all_shares && source.front().share != all_shares;
    if (shares != (of_shares ? s_.grid.extent_of(s_.head_axis) : 1))
      fail(rank, fmt::format("copies chunk {}, which is not in the source", wanted.chunk));
    return summed;
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
    const auto members = static_cast<std::size_t>(s_.grid.extent_of(op.axes));
    const auto place = static_cast<std::size_t>(s_.grid.place_in_group(rank, op.axes));
    for (const int peer : s_.grid.group(rank, op.axes)) {
      const auto& all = from(peer);
      if (op.kind == op_kind::all_gather) {
        result.insert(result.end(), all.begin(), all.end());
        continue;
      }
      const auto slot = all.size() / members;
      const auto mine = all.begin() + static_cast<std::ptrdiff_t>(place * slot);
      if (op.kind == op_kind::all_to_all || result.empty()) {
        result.insert(result.end(), mine, mine + static_cast<std::ptrdiff_t>(slot));
      } else {
        for (std::size_t i = 0; i < slot; ++i) {
          const auto& part = mine[static_cast<std::ptrdiff_t>(i)];
          add(rank, result[i].summed, part.summed);
          result[i].sinks += part.sinks;
        }
      }
    }
    if (op.kind == op_kind::reduce_scatter) require_summable(rank, result);
    return result;
  }

  void require_summable(int rank, contents& sums) const {
    for (auto& c : sums) {
      if (c.what == tensor::o && !std::exchange(c.weighed, false))
        fail(rank, "sums outputs that are not weighed");
    }
  }

  void verify_results() {
    std::vector<bool> seen(s_.buffers.size());
    const auto is_written = [&](tensor what, int part) {
      return std::any_of(s_.program.begin(), s_.program.end(), [&](const operation& op) {
        return contains(op.writes, what) && find(op.writes, what).part == part &&
               s_.buffer_of(find(op.writes, what)).resident;
      });
    };
    for (const auto what : results_of(s_.pass)) {
      for (int part = 0; part < s_.parts; ++part) {
        if (!is_written(what, part)) fail(0, fmt::format("has no {}", name_of(what)));
      }
    }
    for (auto op = s_.program.rbegin(); op != s_.program.rend(); ++op) {
      for (const auto& o : op->writes) {
        const auto& b = s_.buffer_of(o);
        if (!b.resident || !is_result(b) || seen[static_cast<std::size_t>(o.buffer)]) continue;
        seen[static_cast<std::size_t>(o.buffer)] = true;
        for_all([&](int rank) { verify(rank, o); });
      }
    }
  }

  void verify(int rank, const operand& o) {
    for (const auto& c : get(rank, o)) {
      const auto what = name_of(o.what);
      const bool share = s_.buffer_of(o).heads == head_form::share;
      if (!share && c.chunk != s_.chunk_of(rank, side_of(o.what)))
        fail(rank, fmt::format("holds another rank's {}", what));
      const bool lacks_kept = s_.keeps_apart && !c.has_kept;
      if (!is_complete(c) || c.summed.empty() || c.weighed || c.tail || c.first || lacks_kept)
        fail(rank, fmt::format("holds an incomplete {}", what));
      if (c.sinks != (s_.pass == pass_kind::forward ? parts_of_sinks_ : 0))
        fail(rank,
             fmt::format("has {} of {} parts of the sinks in {}", c.sinks, parts_of_sinks_, what));
    }
  }

  /// Of all chunks of the other side, or of those that a window reaches.
  bool is_complete(const content& c) const {
    const int total = s_.chunk_total(), reach = s_.window_reach.value_or(total);
    const bool keys = is_key_side(c.what);
    const int first = s_.window_reach && keys ? c.chunk : std::max(0, c.chunk - reach);
    const int last = s_.window_reach && !keys ? c.chunk : std::min(total - 1, c.chunk + reach);
    return std::all_of(c.summed.begin() + first, c.summed.begin() + last + 1,
                       [](bool summed) { return summed; });
  }

  const schedule& s_;
  std::vector<std::vector<std::vector<std::optional<content>>>> memory_;  ///< [rank][buffer][slot]
  std::size_t number_ = 0;
  int parts_of_sinks_ = 0;
};

}  // namespace

void check(const schedule& s) {
  named_execution(s).run();
}

}  // namespace attnsim
