#include "tests/hosts/private_namespaces.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace attnsim::hosts {
namespace {

/// In the keeper, a fork of a process that may have threads: system calls alone. The errno of the
/// first that failed.
int prepare_mounts() {
  const bool done = mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    mount("proc", "/proc", "proc", 0, nullptr) == 0 &&
                    mount("tmpfs", "/run", "tmpfs", 0, nullptr) == 0 &&
                    mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) == 0;
  return done ? 0 : errno;
}

[[noreturn]] void keep(int socket) {
  dup2(socket, STDIN_FILENO);
  close_range(3, ~0U, 0);
  signal(SIGCHLD, SIG_IGN);  // orphans inside are reaped by the kernel
  const int failure = prepare_mounts();
  char byte;
  if (write(STDIN_FILENO, &failure, sizeof failure) == sizeof failure)
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
  _exit(0);
}

std::runtime_error refusal(int error) {
  return std::runtime_error(fmt::format("namespaces: {}: root is needed", std::strerror(error)));
}

}  // namespace

private_namespaces::private_namespaces() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw refusal(errno);
  constexpr int fresh =
      CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | SIGCHLD;
  keeper_ = static_cast<pid_t>(syscall(SYS_clone, fresh, nullptr, nullptr, nullptr, nullptr));
  int failure = errno;
  if (keeper_ == 0) keep(ends[1]);
  close(ends[1]);
  socket_ = ends[0];
  if (keeper_ > 0 && read(socket_, &failure, sizeof failure) == sizeof failure && failure == 0)
    return;
  close(socket_);
  if (keeper_ > 0) waitpid(keeper_, nullptr, 0);
  throw refusal(failure);
}

private_namespaces::~private_namespaces() {
  close(socket_);
  kill(keeper_, SIGKILL);
  waitpid(keeper_, nullptr, 0);
}

command_line private_namespaces::inside(const command_line& command) const {
  command_line entered = {"nsenter", fmt::format("--target={}", keeper_), "--all", "--"};
  entered.insert(entered.end(), command.begin(), command.end());
  return entered;
}

std::filesystem::path private_namespaces::outside(const std::filesystem::path& path) const {
  return fmt::format("/proc/{}/root{}", keeper_, path.string());
}

void private_namespaces::write_script(const std::filesystem::path& path, const char* text) const {
  std::ofstream(outside(path)) << text;
  std::filesystem::permissions(outside(path), std::filesystem::perms::owner_all);
}

command_line contained(std::chrono::seconds limit) {
  return {"timeout",      "--signal=KILL", std::to_string(limit.count()),
          "unshare",      "--pid",         "--fork",
          "--kill-child", "--mount-proc"};
}

}  // namespace attnsim::hosts
