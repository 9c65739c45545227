// A corner of this machine that vanishes with its owner: processes, network devices, mounts, host
// name and shared memory of its own, in Linux namespaces that have no name outside.
//
// One process, the keeper, is the first of the process namespace and lives until its end of a
// socket reads end of file, which the kernel delivers however the owner ends, SIGKILL included.
// With the first process the kernel ends all others inside, and with the last process it drops the
// network devices and the mounts. So nothing needs removal and nothing can be left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include "tests/hosts/run_program.hpp"

namespace attnsim::hosts {

class private_namespaces {
 public:
  /// Empty /run, /dev/shm and network, one file tree with the owner otherwise. std::runtime_error
  /// where the kernel refuses, as it does to all but root.
  private_namespaces();
  ~private_namespaces();
  private_namespaces(const private_namespaces&) = delete;
  private_namespaces& operator=(const private_namespaces&) = delete;

  /// The command that runs `command` inside.
  command_line inside(const command_line& command) const;

  /// The name out here of the file that is `path` inside.
  std::filesystem::path outside(const std::filesystem::path& path) const;

  /// Makes `path` inside a program of this text.
  void write_script(const std::filesystem::path& path, const char* text) const;

  pid_t keeper() const { return keeper_; }

 private:
  int socket_;
  pid_t keeper_;
};

/// Before a command inside: makes it the first process of a process namespace of its own, whose end, by itself or by the
/// kernel after `limit`, ends all others.
command_line contained(std::chrono::seconds limit);

}  // namespace attnsim::hosts
