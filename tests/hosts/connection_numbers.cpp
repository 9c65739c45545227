// Preloaded into ranks (LD_PRELOAD): the connections that a process opens to one host are numbered 0, 1, ..., 63, 0, ..., and their
// packets carry the number as their DSCP (RFC 2474, six bits), so that a link can tell them apart and serve them in turn, as queue
// pairs of RDMA are. Ports do not do: two of NCCL's channels that happen to share a queue slow their ring, and all that wait for it.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <mutex>

namespace {

int next_number(in_addr_t address) {
  static std::mutex mutex;
  static auto* const opened =
      new std::map<in_addr_t, unsigned>;  // outlives threads that connect to the end
  const std::lock_guard lock(mutex);
  return static_cast<int>((*opened)[address]++ % 64);
}

}  // namespace

extern "C" int connect(int socket, const sockaddr* to, socklen_t size) {
  static auto* const original =
      reinterpret_cast<int (*)(int, const sockaddr*, socklen_t)>(dlsym(RTLD_NEXT, "connect"));
  sockaddr_in address{};
  if (size >= sizeof address && to->sa_family == AF_INET) {
    std::memcpy(&address, to, sizeof address);
    const int field = next_number(address.sin_addr.s_addr) << 2;
    setsockopt(socket, IPPROTO_IP, IP_TOS, &field, sizeof field);
  }
  return original(socket, to, size);
}
