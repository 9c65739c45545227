// Every command whose answer goes to standard output says when it could not be written.
#include <gtest/gtest.h>

#include "tests/cli/program.hpp"

namespace attnsim {
namespace standard_output_test {

const std::string problem = " dgx-h100 --nodes 1 --seq 16K --heads 8 --quiet";
const std::string measured = "reproduce/measured/h200/held_out_host_memory.json";
const std::string two_gpus = "tests/gpu/two-h100-host-memory.yaml";

/// All that print, each in all its formats.
std::vector<std::string> commands(const temporary_folder& folder) {
  std::vector<std::string> all{"--help",
                               "--version",
                               "predict --help",
                               "topology import --help",
                               "topology list",
                               "topology check dgx-h100",
                               "topology show dgx-h100 --nodes 1 --quiet",
                               "topology export dgx-h100 --nodes 1 --to graphml",
                               "topology import dgx-h100 --quiet",
                               "schedules",
                               "completion bash",
                               "completion zsh",
                               "completion fish",
                               "complete predict --ma",
                               "reference",
                               "plan --schedules ring --explain" + problem,
                               "plan --schedules ring --tokens zigzag --emit megatron" + problem,
                               "calibrate --device h200-sxm5 --measurements " + measured + "@" +
                                   two_gpus + " --out " + folder.file("profile.yaml")};
  const std::vector<std::string> with_formats{
      "predict" + problem,
      "plan --schedules ring" + problem,
      "plan --schedules ring --what-if heads=8..16" + problem,
      "reproduce nccl-tests --quiet",
      "compare " + two_gpus + " " + measured,
      "validate star --ranks 2 --seq 64 --heads 2 --head-dim 16 --repeats 1 --times-only"};
  for (const auto& command : with_formats) {
    for (const auto* format : {"table", "json", "csv"})
      all.push_back(command + " --format " + format);
  }
  return all;
}

bool is_built(const std::string& command) {
  return !command.starts_with("validate") || run_program("validate --help").exit_code == 0;
}

void expect_error(const std::string& redirection, const std::string& message) {
  const temporary_folder folder;
  for (const auto& command : commands(folder)) {
    if (!is_built(command)) continue;
    EXPECT_EQ(run_program(command).exit_code, 0) << command;
    const auto r = run_program(command, "sh -c 'exec \"$@\" " + redirection + "' sh");
    EXPECT_EQ(r.exit_code, 1) << command;
    EXPECT_EQ(r.messages, "attnsim: standard output: " + message + "\n") << command;
  }
}

TEST(standard_output, that_is_full) {
  expect_error(">/dev/full", "No space left on device");
}

TEST(standard_output, that_is_closed) {
  expect_error(">&-", "Bad file descriptor");
}

/// Its prediction is printed all the same.
TEST(standard_output, of_what_is_infeasible) {
  const auto r = run_program("predict dgx-h100 --nodes 1 --seq 512M --heads 64",
                             "sh -c 'exec \"$@\" >/dev/full' sh");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(r.messages, "attnsim: standard output: No space left on device\n");
}

/// The file must not get the number of the closed stream, nor what is printed there.
TEST(standard_output, that_is_closed_does_not_end_up_in_a_file) {
  const temporary_folder folder;
  const auto page = folder.file("page.html");
  const auto question = "predict" + problem + " --report " + page;
  ASSERT_EQ(run_program(question).exit_code, 0);
  const auto whole = read_all(page);
  EXPECT_EQ(run_program(question, "sh -c 'exec \"$@\" <&- >&- 2>&-' sh").exit_code, 1);
  EXPECT_EQ(read_all(page), whole);
}

TEST(standard_output, that_is_closed_matters_only_where_something_is_printed) {
  const temporary_folder folder;
  const auto cluster = folder.file("cluster.yaml");
  const auto r = run_program("topology import dgx-h100 --quiet --out " + cluster,
                             "sh -c 'exec \"$@\" >&-' sh");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.messages, "");
  EXPECT_NE(read_all(cluster), "");
}

}  // namespace standard_output_test
}  // namespace attnsim
