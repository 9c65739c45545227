#include "model/schedule/head_parts.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace attnsim {
namespace {

constexpr int sent_ahead = 2;  ///< parts
constexpr std::size_t most_streams_of_parts = 8;

/// Operations [first, last) of the program, launched together.
struct stretch {
  std::size_t first = 0, last = 0;
  bool has_kernel = false;
};

bool waits_for_transfer(const operation& op) {
  return op.stream == 0 && std::any_of(op.needs.begin() + 1, op.needs.end(),
                                       [](std::uint32_t needed) { return needed > 0; });
}

/// Each from a computation that waits for a transfer, or the first kernel, to the next; the first is what is ahead.
std::vector<stretch> stretches_of(const schedule& s) {
  std::vector<stretch> all(1);
  bool kernels = false;
  for (std::size_t i = 0; i < s.program.size(); ++i) {
    const auto& op = s.program[i];
    const bool first_kernel = is_kernel(op.kind) && !kernels;
    if (first_kernel || waits_for_transfer(op)) all.push_back({i, i});
    all.back().last = i + 1;
    all.back().has_kernel |= is_kernel(op.kind);
    kernels |= is_kernel(op.kind);
  }
  return all;
}

class parted {
 public:
  parted(const schedule& one, int parts) : one_(one), all_(one), stretches_(stretches_of(one)) {
    all_.parts = parts;
    all_.program.clear();
    all_.buffers.clear();
    while (!stretches_[stretches_.size() - 1 - tail_].has_kernel) ++tail_;
    find_streams_ahead();
  }

  schedule write() {
    for (int part = 0; part < all_.parts; ++part)
      all_.buffers.insert(all_.buffers.end(), one_.buffers.begin(), one_.buffers.end());
    for (int part = 0; part <= sent_ahead; ++part) prepare(part);
    for (int part = 0; part < sent_ahead; ++part) send(part);
    for (int part = 0; part < all_.parts; ++part) {
      send(part + sent_ahead);
      prepare(part + sent_ahead + 1);
      add_body(part);
    }
    while (!tails_.empty()) advance_tails();
    if (all_.streams.size() > most_streams_of_parts)
      throw std::invalid_argument("parts of the heads need more streams than a schedule may have");
    share_buffers(all_);
    derive_needs(all_);
    return std::move(all_);
  }

 private:
  struct tail {
    int part;
    std::vector<stretch>::const_iterator next;
  };

  /// What is ahead of a part, if there is such a part: computations, which wait for nothing, and transfers.
  void prepare(int part) {
    for_each_ahead(part, [&](const operation& op) {
      if (op.stream == 0) add(op, part);
    });
  }

  void send(int part) {
    for_each_ahead(part, [&](operation op) {
      if (op.stream == 0) return;
      op.stream = stream_ahead_[static_cast<std::size_t>(op.stream)];
      add(std::move(op), part);
    });
  }

  /// A stream that is used between kernels has another for what is ahead.
  void find_streams_ahead() {
    const auto is_of_kernel = [](const operation& op) { return is_kernel(op.kind); };
    const auto& program = one_.program;
    const auto first = std::find_if(program.begin(), program.end(), is_of_kernel);
    const auto last = std::find_if(program.rbegin(), program.rend(), is_of_kernel).base();
    std::set<int> between;
    for (auto op = first; op != last; ++op) between.insert(op->stream);
    for (int stream = 0; stream < static_cast<int>(one_.streams.size()); ++stream) {
      const bool twin = stream > 0 && between.contains(stream);
      stream_ahead_.push_back(twin ? static_cast<int>(all_.streams.size()) : stream);
      if (twin) all_.streams.push_back(one_.streams[static_cast<std::size_t>(stream)] + " ahead");
    }
  }

  template <typename Add>
  void for_each_ahead(int part, Add add) const {
    if (part >= all_.parts) return;
    const auto& ahead = stretches_.front();
    for (auto i = ahead.first; i < ahead.last; ++i) add(one_.program[i]);
  }

  void add_body(int part) {
    const auto end = stretches_.end() - static_cast<std::ptrdiff_t>(tail_);
    for (auto one = stretches_.begin() + 1; one != end; ++one) add(*one, part);
    advance_tails();
    if (tail_ > 0) tails_.push_front({part, end});
  }

  /// By one stretch each, that of the latest part first.
  void advance_tails() {
    for (auto& [part, next] : tails_) add(*next++, part);
    std::erase_if(tails_, [&](const tail& one) { return one.next == stretches_.end(); });
  }

  void add(const stretch& one, int part) {
    for (auto i = one.first; i < one.last; ++i) add(one_.program[i], part);
  }

  void add(operation op, int part) {
    for (auto* list : {&op.reads, &op.writes}) {
      for (auto& o : *list) {
        o.buffer += part * static_cast<int>(one_.buffers.size());
        o.part = part;
      }
    }
    all_.program.push_back(std::move(op));
  }

  const schedule& one_;
  schedule all_;
  std::vector<stretch> stretches_;
  std::size_t tail_ = 0;  ///< how many stretches follow the last kernel's
  std::vector<int> stream_ahead_;
  std::deque<tail> tails_;  ///< not launched yet
};

}  // namespace

schedule in_head_parts(schedule one, int parts) {
  if (parts == 1) return one;
  return parted(one, parts).write();
}

}  // namespace attnsim
