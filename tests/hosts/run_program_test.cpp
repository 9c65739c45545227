#include "tests/hosts/run_program.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace attnsim::hosts {
namespace run_program_test {

TEST(run_program, captures_output_errors_and_status) {
  const auto result = run_program({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
}

TEST(run_program, has_the_status_of_a_shell_for_signals_and_missing_programs) {
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}).status, 137);
  const auto missing = run_program({"no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.errors, "no-such-program: No such file or directory");
}

TEST(run_program, takes_more_output_than_a_pipe_holds) {
  EXPECT_EQ(run_program({"head", "-c", "3000000", "/dev/zero"}).output.size(), 3000000u);
}

TEST(output_of, throws_the_last_line_of_errors) {
  EXPECT_EQ(output_of({"echo", "out"}), "out\n");
  try {
    output_of({"sh", "-c", "echo first >&2; echo last >&2; exit 2"});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::EndsWith("status 2: last"));
  }
}

TEST(is_installed, searches_path) {
  EXPECT_TRUE(is_installed("sh"));
  EXPECT_FALSE(is_installed("no-such-program"));
}

}  // namespace run_program_test
}  // namespace attnsim::hosts
