#include "cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace attnsim::cli {

void take_closed_streams() {
  const auto take = [](int stream, int access) {
    if (fcntl(stream, F_GETFD) == -1) open("/dev/null", access);  // gets the least free number
  };
  take(STDIN_FILENO, O_WRONLY);
  take(STDOUT_FILENO, O_RDONLY);
  take(STDERR_FILENO, O_WRONLY);
}

std::string close_standard_output(int failure) {
  const bool failed_before = std::ferror(stdout) != 0;
  const bool fails = std::fclose(stdout) != 0;
  if (failure == 0 && fails) failure = errno;
  if (!fails && !failed_before) return "";
  return failure == 0 ? "cannot be written" : std::generic_category().message(failure);
}

}  // namespace attnsim::cli
