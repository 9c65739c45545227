// attnsim search: killed and resumed it finds the same.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/program.hpp"

namespace attnsim {
namespace search_test {

using namespace std::chrono_literals;

std::string asked(const std::string& evaluations, const std::string& more = "") {
  return "search pcie-8 --seq 16K --heads 16 --pass forward --format json --quiet --evaluations " +
         evaluations + " " + more;
}

/// The program's process, which a shell has become.
pid_t started(const std::string& arguments) {
  const auto command = std::string("exec ") + ATTNSIM_PROGRAM + " " + arguments;
  const pid_t child = fork();
  if (child != 0) return child;
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) dup2(nowhere, stream);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

std::ptrdiff_t lines_of(const std::string& file) {
  const auto text = read_all(file);
  return std::count(text.begin(), text.end(), '\n');
}

TEST(search, that_was_killed_goes_on_and_finds_the_same) {
  const temporary_folder folder;
  const auto log = folder.file("search.log");
  const auto child = started(asked("100000", "--log " + log));
  constexpr int some = 60;
  for (int i = 0; i < 6000 && lines_of(log) < some; ++i) std::this_thread::sleep_for(10ms);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before";
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  ASSERT_GE(lines_of(log), some);
  const auto whole = run_program(asked("250")), resumed = run_program(asked("250", "--log " + log));
  ASSERT_EQ(whole.exit_code, 0) << whole.messages;
  EXPECT_EQ(nlohmann::json::parse(whole.output)["evaluated"], 250);
  EXPECT_EQ(resumed.output, whole.output);
}

}  // namespace search_test
}  // namespace attnsim
