#include "validate/transports/host_transport.hpp"

#include <fmt/format.h>

#include <cstring>

#include "validate/transports/host_channel.hpp"

namespace attnsim::validate {
namespace {

/// Each part behind its size.
blob one_message(const std::vector<blob>& parts) {
  blob message;
  for (const auto& part : parts) {
    const std::uint64_t size = part.size();
    const auto* bytes = reinterpret_cast<const std::byte*>(&size);
    message.insert(message.end(), bytes, bytes + sizeof size);
    message.insert(message.end(), part.begin(), part.end());
  }
  return message;
}

std::vector<blob> parts_of(const blob& message) {
  std::vector<blob> parts;
  for (auto at = message.begin(); at != message.end(); at += std::ssize(parts.back())) {
    std::uint64_t size = 0;
    std::memcpy(&size, &*at, sizeof size);
    at += sizeof size;
    parts.emplace_back(at, at + static_cast<std::ptrdiff_t>(size));
  }
  return parts;
}

}  // namespace

std::unique_ptr<channel> host_transport::open(kernels::backend& device, kernels::stream_id stream,
                                              const std::vector<int>& group, int) {
  return std::make_unique<host_channel>(*this, device, stream, lanes_++, group);
}

void host_transport::fail(const std::string& what, const std::string& why) const {
  throw transport_error(fmt::format("rank {}, {}: {}", rank(), what, why));
}

std::string host_transport::nothing_from(int rank) const {
  return fmt::format("nothing from rank {} within {:g} s", rank, time_out_.count());
}

void host_transport::send(const std::string& what, int to, const blob& data) {
  const std::uint64_t size = data.size();
  exchange(control, what, {{to, &size, sizeof size}, {to, data.data(), data.size()}}, {});
}

blob host_transport::receive(const std::string& what, int from) {
  std::uint64_t size = 0;
  exchange(control, what, {}, {{from, &size, sizeof size}});
  blob data(size);
  exchange(control, what, {}, {{from, data.data(), data.size()}});
  return data;
}

/// By way of rank 0, which sends all in one message.
std::vector<blob> host_transport::share(const blob& own) {
  const std::string what = "sharing of results";
  if (rank() != 0) {
    send(what, 0, own);
    return parts_of(receive(what, 0));
  }
  std::vector<blob> all{own};
  for (int r = 1; r < ranks(); ++r) all.push_back(receive(what, r));
  const auto message = one_message(all);
  for (int r = 1; r < ranks(); ++r) send(what, r, message);
  return all;
}

/// Of several questions to rank 0 the one answered fastest is the most exact: the answer was given
/// in its middle, by half its duration at most.
double host_transport::clock_offset() {
  using clock = std::chrono::steady_clock;
  const std::string what = "alignment of clocks";
  const auto now = [] { return std::chrono::duration<double>(clock::now().time_since_epoch()); };
  constexpr int questions = 12;
  double offset = 0, fastest = time_out_.count();
  for (int r = 1; r < ranks(); ++r) {
    for (int i = 0; i < questions && (rank() == 0 || rank() == r); ++i) {
      double theirs = 0;
      if (rank() == 0) {
        exchange(control, what, {}, {{r, &theirs, sizeof theirs}});
        theirs = now().count();
        exchange(control, what, {{r, &theirs, sizeof theirs}}, {});
        continue;
      }
      const double asked = now().count();
      exchange(control, what, {{0, &asked, sizeof asked}}, {});
      exchange(control, what, {}, {{0, &theirs, sizeof theirs}});
      const double answered = now().count();
      if (answered - asked >= fastest) continue;
      fastest = answered - asked;
      offset = theirs - (asked + answered) / 2;
    }
  }
  return offset;
}

}  // namespace attnsim::validate
