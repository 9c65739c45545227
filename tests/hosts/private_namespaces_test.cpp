#include "tests/hosts/private_namespaces.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "tests/hosts/hosts.hpp"
#include "tests/hosts/what_is_left.hpp"

namespace attnsim::hosts {
namespace private_namespaces_test {

class private_namespaces_test : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lack = emulated_hosts::missing(); !lack.empty()) GTEST_SKIP() << lack;
  }
};

bool has_namespaces(pid_t process) {
  std::error_code none;
  return !std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/ns/net", none)
              .empty();
}

TEST_F(private_namespaces_test, share_files_and_hide_the_rest) {
  const private_namespaces inside;
  std::ofstream(inside.outside("/run/note")) << "seen";
  EXPECT_EQ(output_of(inside.inside({"cat", "/run/note"})), "seen");
  EXPECT_FALSE(std::filesystem::exists("/run/note"));
  EXPECT_EQ(output_of(inside.inside({"ls", "/sys/class/net"})),
            output_of({"ls", "/sys/class/net"}));
  EXPECT_EQ(output_of(inside.inside({"sh", "-c", "wc -l < /proc/net/dev"})), "3\n");
  EXPECT_EQ(output_of(inside.inside({"sh", "-c", "ls -d /proc/[0-9]* | head -1"})), "/proc/1\n");
}

TEST_F(private_namespaces_test, end_with_their_owner_in_scope) {
  pid_t keeper;
  {
    const private_namespaces first;
    const private_namespaces second;
    keeper = first.keeper();
    EXPECT_TRUE(has_namespaces(keeper));
  }
  EXPECT_FALSE(has_namespaces(keeper));
}

/// Starts an owner with a process inside, ends it by a signal: the keeper follows.
void expect_gone_after(int signal) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    const private_namespaces inside;
    output_of(inside.inside({"sh", "-c", "sleep 1000 & exit 0"}));
    const pid_t keeper = inside.keeper();
    if (write(pipe_ends[1], &keeper, sizeof keeper) != sizeof keeper) _exit(1);
    pause();
    _exit(0);
  }
  pid_t keeper = 0;
  ASSERT_EQ(read(pipe_ends[0], &keeper, sizeof keeper), static_cast<ssize_t>(sizeof keeper));
  EXPECT_TRUE(has_namespaces(keeper));
  kill(owner, signal);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return !has_namespaces(keeper); }, std::chrono::seconds(30)));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(private_namespaces_test, end_with_their_owner_killed) {
  expect_gone_after(SIGKILL);
}
TEST_F(private_namespaces_test, end_with_their_owner_interrupted) {
  expect_gone_after(SIGINT);
}
TEST_F(private_namespaces_test, end_with_their_owner_terminated) {
  expect_gone_after(SIGTERM);
}

}  // namespace private_namespaces_test
}  // namespace attnsim::hosts
