// Preloaded into ranks (LD_PRELOAD): the connections that a process has open to one host are numbered 0, 1, ..., and their packets
// carry the number as their DSCP (RFC 2474, six bits), so that a link can tell them apart and serve them in turn, as queue
// pairs of RDMA are. Ports do not do: two of NCCL's channels that happen to share a queue slow their ring, and all that wait for it.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace {

constexpr int numbers = 64;

template <typename Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Numbers of open connections by the address that they lead to. Never destroyed: threads close sockets while a process ends.
class open_connections {
 public:
  static open_connections& of_process() {
    static auto* all = new open_connections;
    return *all;
  }

  /// The least number that no open connection to the address has; what more than 64 have is the last.
  int number(int socket, in_addr_t address) {
    const std::lock_guard lock(mutex_);
    forget_locked(socket);
    auto& taken = taken_[address];
    int least = 0;
    while (least < numbers - 1 && taken.contains(least)) ++least;
    taken.insert(least);
    of_socket_[socket] = {address, least};
    return least;
  }

  void forget(int socket) {
    const std::lock_guard lock(mutex_);
    forget_locked(socket);
  }

 private:
  void forget_locked(int socket) {
    const auto found = of_socket_.find(socket);
    if (found == of_socket_.end()) return;
    const auto [address, number] = found->second;
    taken_[address].erase(number);
    of_socket_.erase(found);
  }

  std::mutex mutex_;
  std::map<in_addr_t, std::set<int>> taken_;
  std::map<int, std::pair<in_addr_t, int>> of_socket_;
};

}  // namespace

extern "C" int connect(int socket, const sockaddr* to, socklen_t size) {
  static auto* const next = original<int(int, const sockaddr*, socklen_t)>("connect");
  sockaddr_in address{};
  if (size >= sizeof address && to->sa_family == AF_INET) {
    std::memcpy(&address, to, sizeof address);
    const int field = open_connections::of_process().number(socket, address.sin_addr.s_addr) << 2;
    setsockopt(socket, IPPROTO_IP, IP_TOS, &field, sizeof field);
  }
  return next(socket, to, size);
}

extern "C" int close(int file) {
  static auto* const next = original<int(int)>("close");
  open_connections::of_process().forget(file);
  return next(file);
}
