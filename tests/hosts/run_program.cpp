#include "tests/hosts/run_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <boost/process.hpp>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace attnsim::hosts {
namespace {

namespace process = boost::process;

/// A file that takes the place of an output stream: nothing to drain while the program runs, and what it leaves running
/// keeps nobody waiting.
class captured_stream {
 public:
  captured_stream() : file_(std::tmpfile(), std::fclose) {
    if (!file_) throw std::runtime_error("no temporary file can be made");
  }
  FILE* file() const { return file_.get(); }

  std::string text() const {
    std::fseek(file(), 0, SEEK_END);
    std::string text(static_cast<std::size_t>(std::ftell(file())), '\0');
    std::rewind(file());
    text.resize(std::fread(text.data(), 1, text.size(), file()));
    return text;
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

std::string path_of(const std::string& program) {
  return program.find('/') == std::string::npos ? process::search_path(program).string() : program;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

program_result run_program(const command_line& command) {
  const captured_stream output, errors;
  const auto path = path_of(command[0]);
  if (path.empty()) return {127, "", command[0] + ": No such file or directory"};
  std::error_code failure;
  process::child program(process::exe = path,
                         process::args = command_line(command.begin() + 1, command.end()),
                         process::std_in<process::null, process::std_out> output.file(),
                         process::std_err > errors.file(), failure);
  if (failure) return {127, "", command[0] + ": " + failure.message()};
  program.wait();
  const int status = program.native_exit_code();
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), output.text(),
          errors.text()};
}

std::string output_of(const command_line& command) {
  auto result = run_program(command);
  if (result.status != 0)
    throw std::runtime_error(fmt::format("{}: status {}: {}", fmt::join(command, " "),
                                         result.status, last_line(result.errors)));
  return std::move(result.output);
}

bool is_installed(const std::string& program) {
  return !process::search_path(program).empty();
}

}  // namespace attnsim::hosts
