// For tests that nothing of emulated hosts outlives them: what this machine still holds of a
// namespace.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

namespace attnsim::hosts {

/// The names of /run, /tmp and /dev/shm that Open MPI or emulated hosts could have made.
inline int leftover_files() {
  int count = 0;
  for (const auto* folder : {"/run", "/run/netns", "/tmp", "/dev/shm"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const auto name = entry.path().filename().string();
      for (const auto* prefix : {"ompi", "openmpi", "pmix", "vader", "launch-", "h0", "fabric"})
        count += name.starts_with(prefix);
    }
  }
  return count;
}

/// Processes whose environment holds `mark`, wherever they live.
inline int processes_marked(const std::string& mark) {
  int count = 0;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(process.path() / "environ");
    const std::string environment((std::istreambuf_iterator<char>(file)), {});
    count += environment.find(mark) != std::string::npos;
  }
  return count;
}

inline bool comes_true(const std::function<bool()>& condition, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

}  // namespace attnsim::hosts
