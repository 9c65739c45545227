#include "validate/transports/rendezvous.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
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

void prepare(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
}

/// Whether the socket is ready before the time is up.
bool await(int socket, short events, clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
    pollfd p{.fd = socket, .events = events, .revents = 0};
    const int ready = poll(&p, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
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

tcp_transport::tcp_transport(const job_place& place, std::chrono::duration<double> time_out)
    : host_transport(time_out), place_(place), sockets_(static_cast<std::size_t>(place.ranks), -1) {
  if (place.ranks == 1) return;
  try {
    place.rank == 0 ? accept_all(after(time_out)) : reach_rank_0(after(time_out));
  } catch (...) {
    close_all();
    throw;
  }
}

tcp_transport::~tcp_transport() {
  close_all();
}

void tcp_transport::close_all() {
  for (auto& s : sockets_) {
    if (s >= 0) close(s);
    s = -1;
  }
}

void tcp_transport::hang_up() {
  for (const int s : sockets_) {
    if (s >= 0) ::shutdown(s, SHUT_RDWR);
  }
}

void tcp_transport::accept_all(deadline until) {
  const std::string what = "rendezvous";
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(static_cast<std::uint16_t>(place_.port));
  own.sin_addr.s_addr = htonl(INADDR_ANY);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      listen(listener, place_.ranks) != 0) {
    const auto why = std::strerror(errno);
    close(listener);
    fail(what, fmt::format("port {}: {}", place_.port, why));
  }
  const auto missing = [&] {
    std::vector<int> list;
    for (int r = 1; r < ranks(); ++r) {
      if (sockets_[static_cast<std::size_t>(r)] < 0) list.push_back(r);
    }
    return list;
  };
  while (!missing().empty()) {
    if (!await(listener, POLLIN, until)) {
      close(listener);
      fail(what, fmt::format("nothing from rank {} within {:g} s", fmt::join(missing(), ", "),
                             time_out().count()));
    }
    const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) continue;
    prepare(peer);
    introduction who;
    const bool here = await(peer, POLLIN, std::min(until, after(std::chrono::seconds(5)))) &&
                      recv(peer, &who, sizeof who, 0) == sizeof who && who.magic == greeting;
    const bool fits = here && who.ranks == ranks() && who.rank > 0 && who.rank < ranks() &&
                      sockets_[static_cast<std::size_t>(who.rank)] < 0;
    if (fits) {
      sockets_[static_cast<std::size_t>(who.rank)] = peer;
      continue;
    }
    close(peer);
    if (!here) continue;  // a stranger
    close(listener);
    fail(what, fmt::format("a second rank {}, or one of a job of {} ranks, at port {}", who.rank,
                           who.ranks, place_.port));
  }
  close(listener);
}

void tcp_transport::reach_rank_0(deadline until) {
  const auto where = fmt::format("{}:{}", place_.address, place_.port);
  do {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(place_.address.c_str(), std::to_string(place_.port).c_str(), &wanted, &found))
      fail("rendezvous", fmt::format("no such host: {}", place_.address));
    const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected = connect(peer, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    if (connected) {
      prepare(peer);
      const introduction self{.rank = rank(), .ranks = ranks()};
      if (::send(peer, &self, sizeof self, MSG_NOSIGNAL) == sizeof self) {
        sockets_[0] = peer;
        return;
      }
    }
    close(peer);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (clock::now() < until);
  fail("rendezvous", fmt::format("no rank 0 at {} within {:g} s", where, time_out().count()));
}

void tcp_transport::exchange(int, const std::string& what, const std::vector<outgoing>& sends,
                             const std::vector<incoming>& receives) {
  const auto until = after(time_out());
  for (const auto& s : sends) pass(what, s.to, const_cast<void*>(s.data), s.bytes, true, until);
  for (const auto& r : receives) pass(what, r.from, r.data, r.bytes, false, until);
}

void tcp_transport::pass(const std::string& what, int peer, void* data, std::size_t bytes,
                         bool sends, deadline until) {
  const int through = sockets_.at(static_cast<std::size_t>(peer));
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const auto passed =
        sends ? ::send(through, at, bytes, MSG_NOSIGNAL) : recv(through, at, bytes, 0);
    if (passed > 0) {
      at += passed;
      bytes -= static_cast<std::size_t>(passed);
      continue;
    }
    if (passed < 0 && errno == EINTR) continue;
    if (passed < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (await(through, sends ? POLLOUT : POLLIN, until)) continue;
      fail(what, nothing_from(peer));
    }
    fail(what, fmt::format("rank {} has ended", peer));
  }
}

int tcp_transport::lost_rank() const {
  for (std::size_t r = 0; r < sockets_.size(); ++r) {
    if (sockets_[r] < 0) continue;
    pollfd p{.fd = sockets_[r], .events = POLLRDHUP, .revents = 0};
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR))) {
      return static_cast<int>(r);
    }
  }
  return -1;
}

}  // namespace attnsim::validate
