#include "model/schedule/head_parts.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace attnsim {
namespace {

constexpr std::size_t most_streams_of_parts = 8;

class parted {
 public:
  parted(const schedule& one, int parts) : one_(one), all_(one) {
    all_.parts = parts;
    all_.program.clear();
    all_.buffers.clear();
    const auto is_first = [](const operation& op) { return is_kernel(op.kind); };
    ahead_ = std::find_if(one.program.begin(), one.program.end(), is_first) - one.program.begin();
  }

  schedule write() {
    for (int part = 0; part < all_.parts; ++part)
      all_.buffers.insert(all_.buffers.end(), one_.buffers.begin(), one_.buffers.end());
    add_ahead(0);
    for (int part = 0; part < all_.parts; ++part) {
      if (part + 1 < all_.parts) add_ahead(part + 1);
      for (auto op = one_.program.begin() + ahead_; op != one_.program.end(); ++op) add(*op, part);
    }
    if (all_.streams.size() > most_streams_of_parts)
      throw std::invalid_argument("parts of the heads need more streams than a schedule may have");
    share_buffers(all_);
    derive_needs(all_);
    return std::move(all_);
  }

 private:
  void add_ahead(int part) {
    for (auto op = one_.program.begin(); op != one_.program.begin() + ahead_; ++op) {
      auto early = *op;
      if (early.stream != 0) early.stream = stream_ahead(early.stream);
      add(early, part);
    }
  }

  int stream_ahead(int stream) {
    const auto [number, is_new] =
        streams_ahead_.try_emplace(stream, static_cast<int>(all_.streams.size()));
    if (is_new) all_.streams.push_back(one_.streams[static_cast<std::size_t>(stream)] + " ahead");
    return number->second;
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
  std::ptrdiff_t ahead_ = 0;
  std::map<int, int> streams_ahead_;
};

}  // namespace

schedule in_head_parts(const schedule& one, int parts) {
  return parts == 1 ? one : parted(one, parts).write();
}

}  // namespace attnsim
