#include "validate/run_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace attnsim::validate {
namespace {

/// A file in memory that takes the place of an output stream: nothing to drain while the program
/// runs.
class captured_stream {
 public:
  captured_stream() : file_(memfd_create("output", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::runtime_error(std::string("memfd_create: ") + std::strerror(errno));
    fcntl(file_, F_SETFL, O_APPEND);
  }
  ~captured_stream() { close(file_); }
  captured_stream(const captured_stream&) = delete;
  captured_stream& operator=(const captured_stream&) = delete;

  int file() const { return file_; }

  std::string text() const {
    std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    std::size_t have = 0;
    while (have < text.size()) {
      const auto got =
          pread(file_, text.data() + have, text.size() - have, static_cast<off_t>(have));
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
  }

 private:
  int file_;
};

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

program_result run_program(const command_line& command) {
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  const captured_stream output, errors;
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_addopen(&streams, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&streams, output.file(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&streams, errors.file(), STDERR_FILENO);
  pid_t process = 0;
  const int failure = posix_spawnp(&process, argv[0], &streams, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&streams);
  if (failure != 0) return {127, "", command[0] + ": " + std::strerror(failure)};

  const int status = wait_for(process);
  return {status, output.text(), errors.text()};
}

std::string output_of(const command_line& command) {
  auto result = run_program(command);
  if (result.status != 0)
    throw std::runtime_error(fmt::format("{}: status {}: {}", fmt::join(command, " "),
                                         result.status, last_line(result.errors)));
  return std::move(result.output);
}

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace attnsim::validate
