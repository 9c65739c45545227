#include "validate/transports/rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <thread>

#include "model/error.hpp"

namespace attnsim::validate {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t greeting = 0x6174746e73696d31;  // "attnsim1"

struct introduction {
  std::uint64_t magic = greeting;
  std::int32_t rank = 0, ranks = 0;
};

/// Launchers by the variables that they set.
struct launcher {
  const char *rank, *ranks, *local_rank, *local_ranks, *job;
};
constexpr launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_ID"},
};

std::optional<int> number(const environment& get, const char* name) {
  const char* text = get(name);
  if (!text) return {};
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stopped != end || value < 0)
    throw input_error(name, text, "expected a number");
  return value;
}

int required(const environment& get, const char* name, const char* besides) {
  if (const auto value = number(get, name)) return *value;
  throw input_error(name, "", fmt::format("expected a number, as {} is set", besides));
}

/// FNV-1a, into the ports that nobody has registered.
int port_of(const char* job) {
  std::uint32_t hash = 2166136261u;
  for (const char* c = job ? job : ""; *c; ++c) {
    hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  }
  return 20000 + static_cast<int>(hash % 12000);
}

/// torchrun's agent listens on MASTER_PORT itself and says so.
int port_of(const environment& get, const launcher& l) {
  const auto master = number(get, "MASTER_PORT");
  if (!master) return port_of(get(l.job));
  const char* taken = get("TORCHELASTIC_USE_AGENT_STORE");
  return taken && std::string_view(taken) == "True" ? *master + 1 : *master;
}

std::string address_of(const environment& get, const job_place& place) {
  if (const char* address = get("MASTER_ADDR")) return address;
  if (place.local_ranks == place.ranks) return "127.0.0.1";
  if (const char* hosts = get("SLURM_STEP_NODELIST")) return first_host(hosts);
  throw input_error("MASTER_ADDR", "",
                    "expected the address of rank 0's host, as ranks are on several hosts");
}

clock::time_point after(std::chrono::duration<double> time) {
  return clock::now() + std::chrono::duration_cast<clock::duration>(time);
}

}  // namespace

std::string first_host(const std::string& list) {
  const auto end = list.find_first_of(",[");
  auto host = list.substr(0, end);
  if (end == std::string::npos || list[end] != '[') return host;
  return host + list.substr(end + 1, list.find_first_of(",-]", end + 1) - end - 1);
}

job_place find_place(const environment& get) {
  for (const auto& l : launchers) {
    const auto rank = number(get, l.rank);
    if (!rank) continue;
    job_place place{.rank = *rank, .ranks = required(get, l.ranks, l.rank)};
    if (place.rank >= place.ranks)
      throw input_error(l.rank, std::to_string(place.rank),
                        fmt::format("expected less than {}={}", l.ranks, place.ranks));
    place.local_rank = number(get, l.local_rank).value_or(place.rank);
    place.local_ranks = number(get, l.local_ranks).value_or(0);
    place.address = address_of(get, place);
    place.port = port_of(get, l);
    return place;
  }
  throw input_error("RANK", "",
                    "expected a launcher's variables: start with mpirun, srun, torchrun or with "
                    "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set");
}

job_place find_place() {
  return find_place([](const char* name) -> const char* { return std::getenv(name); });
}

// --- The star -------------------------------------------------------------------------------------

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto rendezvous = "rendezvous";

}  // namespace

struct tcp_transport::connections {
  asio::io_context events;
  std::map<int, tcp::socket> sockets;  ///< by rank

  /// What came of an operation on a socket or acceptor that `start` begins with a handler; nothing if it was not done in
  /// time, and then nothing of it is left.
  template <typename Socket, typename Start>
  std::optional<error_code> done_by(clock::time_point until, Socket& on, const Start& start) {
    std::optional<error_code> result;
    start([&](const error_code& e, auto&&...) { result = e; });
    events.restart();
    events.run_until(until);
    if (result) return result;
    on.cancel();
    events.run();
    return {};
  }
};

tcp_transport::tcp_transport(const job_place& place, std::chrono::duration<double> time_out)
    : host_transport(time_out), place_(place), connections_(std::make_unique<connections>()) {
  if (place.ranks > 1)
    place.rank == 0 ? accept_all(after(time_out)) : reach_rank_0(after(time_out));
}

tcp_transport::~tcp_transport() = default;

void tcp_transport::hang_up() {
  error_code ignored;
  for (auto& [rank, s] : connections_->sockets) s.shutdown(tcp::socket::shutdown_both, ignored);
}

void tcp_transport::accept_all(deadline until) {
  const auto missing = [&] {
    std::vector<int> list;
    for (int r = 1; r < ranks(); ++r) {
      if (!connections_->sockets.contains(r)) list.push_back(r);
    }
    return list;
  };
  try {
    tcp::acceptor listener(connections_->events,
                           {tcp::v4(), static_cast<std::uint16_t>(place_.port)});
    while (!missing().empty()) {
      tcp::socket peer(connections_->events);
      if (!connections_->done_by(until, listener,
                                 [&](auto then) { listener.async_accept(peer, then); }))
        fail(rendezvous, fmt::format("nothing from rank {} within {:g} s",
                                     fmt::join(missing(), ", "), time_out().count()));
      introduction who;
      const auto read = connections_->done_by(
          std::min(until, after(std::chrono::seconds(5))), peer,
          [&](auto then) { asio::async_read(peer, asio::buffer(&who, sizeof who), then); });
      if (!read || *read || who.magic != greeting) continue;  // a stranger
      if (who.ranks != ranks() || who.rank <= 0 || who.rank >= ranks() ||
          connections_->sockets.contains(who.rank))
        fail(rendezvous, fmt::format("a second rank {}, or one of a job of {} ranks, at port {}",
                                     who.rank, who.ranks, place_.port));
      peer.set_option(tcp::no_delay(true));
      connections_->sockets.emplace(who.rank, std::move(peer));
    }
  } catch (const boost::system::system_error& e) {
    fail(rendezvous, fmt::format("port {}: {}", place_.port, e.code().message()));
  }
}

void tcp_transport::reach_rank_0(deadline until) {
  error_code failed;
  const auto found = tcp::resolver(connections_->events)
                         .resolve(tcp::v4(), place_.address, std::to_string(place_.port), failed);
  if (failed) fail(rendezvous, fmt::format("no such host: {}", place_.address));
  do {
    tcp::socket peer(connections_->events);
    const introduction self{.rank = rank(), .ranks = ranks()};
    asio::connect(peer, found, failed);
    if (!failed) asio::write(peer, asio::buffer(&self, sizeof self), failed);
    if (!failed) {
      peer.set_option(tcp::no_delay(true));
      connections_->sockets.emplace(0, std::move(peer));
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (clock::now() < until);
  fail(rendezvous, fmt::format("no rank 0 at {}:{} within {:g} s", place_.address, place_.port,
                               time_out().count()));
}

void tcp_transport::exchange(int, const std::string& what, const std::vector<outgoing>& sends,
                             const std::vector<incoming>& receives) {
  const auto until = after(time_out());
  const auto pass = [&](int peer, const auto& start) {
    auto& through = connections_->sockets.at(peer);
    const auto done =
        connections_->done_by(until, through, [&](auto then) { start(through, then); });
    if (!done) fail(what, nothing_from(peer));
    if (*done) fail(what, fmt::format("rank {} has ended", peer));
  };
  for (const auto& s : sends)
    pass(s.to,
         [&](auto& to, auto then) { asio::async_write(to, asio::buffer(s.data, s.bytes), then); });
  for (const auto& r : receives)
    pass(r.from, [&](auto& from, auto then) {
      asio::async_read(from, asio::buffer(r.data, r.bytes), then);
    });
}

int tcp_transport::lost_rank() const {
  for (auto& [rank, s] : connections_->sockets) {
    pollfd p{.fd = s.native_handle(), .events = POLLRDHUP, .revents = 0};
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR))) return rank;
  }
  return -1;
}

}  // namespace attnsim::validate
