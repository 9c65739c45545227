#include "validate/transports/host_channel.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/with_type.hpp"

namespace attnsim::validate {
namespace {

const std::byte* sent_slot(const payload& p, int i) {
  return static_cast<const std::byte*>(p.from) + static_cast<std::size_t>(i) * p.slot_bytes;
}

std::byte* received_slot(const payload& p, int i) {
  return static_cast<std::byte*>(p.to) + static_cast<std::size_t>(i) * p.slot_bytes;
}

/// sum[i] = part[i] + own[i], rounded once.
void add(data_type type, const std::byte* part, const std::byte* own, std::byte* sum,
         std::size_t bytes) {
  kernels::with_type(type, [&]<typename T>(std::type_identity<T>) {
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, part + at, sizeof(T));
      std::memcpy(&b, own + at, sizeof(T));
      const T c(float{a} + float{b});
      std::memcpy(sum + at, &c, sizeof(T));
    }
  });
}

}  // namespace

host_channel::host_channel(host_transport& transport, kernels::backend& device,
                           kernels::stream_id stream, int lane, std::vector<int> group)
    : transport_(transport),
      device_(device),
      stream_(stream),
      lane_(lane),
      group_(std::move(group)) {
  const auto own = std::find(group_.begin(), group_.end(), transport.rank());
  place_ = static_cast<int>(own - group_.begin());
}

void host_channel::send_receive(const std::string& what, int to, int from,
                                std::span<const payload> list) {
  device_.call(stream_, [this, what, to, from, all = payloads(list.begin(), list.end())] {
    run_send_receive(what, to, from, all);
  });
}

void host_channel::all_gather(const std::string& what, std::span<const payload> list) {
  device_.call(stream_, [this, what, all = payloads(list.begin(), list.end())] {
    run_all_gather(what, all);
  });
}

void host_channel::reduce_scatter(const std::string& what, std::span<const payload> list) {
  device_.call(stream_, [this, what, all = payloads(list.begin(), list.end())] {
    run_reduce_scatter(what, all);
  });
}

void host_channel::all_to_all(const std::string& what, std::span<const payload> list) {
  device_.call(stream_, [this, what, all = payloads(list.begin(), list.end())] {
    run_all_to_all(what, all);
  });
}

void host_channel::all_reduce(const std::string& what, std::span<const payload> list) {
  device_.call(stream_, [this, what, all = payloads(list.begin(), list.end())] {
    run_all_reduce(what, all);
  });
}

int host_channel::around(int distance) const {
  return ((place_ + distance) % members() + members()) % members();
}

void host_channel::run_send_receive(const std::string& what, int to, int from,
                                    const payloads& all) {
  std::vector<outgoing> sends;
  std::vector<incoming> receives;
  for (const auto& p : all) {
    if (to != place_) sends.push_back({rank_at(to), p.from, p.slot_bytes});
    if (from != place_) receives.push_back({rank_at(from), p.to, p.slot_bytes});
  }
  transport_.exchange(lane_, what, sends, receives);
}

void host_channel::run_all_gather(const std::string& what, const payloads& all) {
  for (const auto& p : all) std::memcpy(received_slot(p, place_), p.from, p.slot_bytes);
  for (int step = 0; step + 1 < members(); ++step) {
    std::vector<outgoing> sends;
    std::vector<incoming> receives;
    for (const auto& p : all) {
      sends.push_back({rank_at(around(1)), received_slot(p, around(-step)), p.slot_bytes});
      receives.push_back({rank_at(around(-1)), received_slot(p, around(-step - 1)), p.slot_bytes});
    }
    transport_.exchange(lane_, what, sends, receives);
  }
}

/// The sum for a place starts at the member behind it and goes round to it.
void host_channel::run_reduce_scatter(const std::string& what, const payloads& all) {
  std::vector<blob> sums, parts;
  for (const auto& p : all) {
    const auto* first = sent_slot(p, around(-1));
    sums.emplace_back(first, first + p.slot_bytes);
    parts.emplace_back(p.slot_bytes);
  }
  for (int step = 1; step < members(); ++step) {
    std::vector<outgoing> sends;
    std::vector<incoming> receives;
    for (std::size_t i = 0; i < all.size(); ++i) {
      sends.push_back({rank_at(around(1)), sums[i].data(), sums[i].size()});
      receives.push_back({rank_at(around(-1)), parts[i].data(), parts[i].size()});
    }
    transport_.exchange(lane_, what, sends, receives);
    for (std::size_t i = 0; i < all.size(); ++i) {
      add(all[i].type, parts[i].data(), sent_slot(all[i], around(-step - 1)), sums[i].data(),
          sums[i].size());
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::memcpy(all[i].to, sums[i].data(), sums[i].size());
  }
}

void host_channel::run_all_to_all(const std::string& what, const payloads& all) {
  std::vector<outgoing> sends;
  std::vector<incoming> receives;
  for (const auto& p : all) {
    std::memcpy(received_slot(p, place_), sent_slot(p, place_), p.slot_bytes);
    for (int other = 0; other < members(); ++other) {
      if (other == place_) continue;
      sends.push_back({rank_at(other), sent_slot(p, other), p.slot_bytes});
      receives.push_back({rank_at(other), received_slot(p, other), p.slot_bytes});
    }
  }
  transport_.exchange(lane_, what, sends, receives);
}

/// What each member has passes round the ring and is added to the sum at every stop.
void host_channel::run_all_reduce(const std::string& what, const payloads& all) {
  std::vector<blob> passing, arriving;
  for (const auto& p : all) {
    passing.emplace_back(sent_slot(p, 0), sent_slot(p, 0) + p.slot_bytes);
    arriving.emplace_back(p.slot_bytes);
    std::memcpy(p.to, passing.back().data(), p.slot_bytes);
  }
  for (int step = 1; step < members(); ++step) {
    std::vector<outgoing> sends;
    std::vector<incoming> receives;
    for (std::size_t i = 0; i < all.size(); ++i) {
      sends.push_back({rank_at(around(1)), passing[i].data(), passing[i].size()});
      receives.push_back({rank_at(around(-1)), arriving[i].data(), arriving[i].size()});
    }
    transport_.exchange(lane_, what, sends, receives);
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto* sum = static_cast<std::byte*>(all[i].to);
      add(all[i].type, arriving[i].data(), sum, sum, all[i].slot_bytes);
    }
    passing.swap(arriving);
  }
}

}  // namespace attnsim::validate
