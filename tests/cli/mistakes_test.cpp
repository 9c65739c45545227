// What the program says to a command line that it does not take, and to text that a terminal would obey.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.hpp"

namespace attnsim {
namespace mistakes_test {

void expect_message(const std::string& command, const std::string& message) {
  const auto r = run_program(command);
  EXPECT_EQ(r.exit_code, 2) << command;
  EXPECT_EQ(r.output, "") << command;
  EXPECT_EQ(r.messages, "attnsim: " + message + "\n");
}

/// The message's last part; what is possible before it may grow.
void expect_suggestion(const std::string& command, const std::string& begins,
                       const std::string& name) {
  const auto r = run_program(command);
  EXPECT_EQ(r.exit_code, 2) << command;
  EXPECT_THAT(r.messages, testing::StartsWith("attnsim: " + begins));
  EXPECT_THAT(r.messages, testing::EndsWith("; did you mean " + name + "?\n"));
}

TEST(mistyped, command) {
  expect_suggestion("plann dgx-h100",
                    "plann: unknown command of attnsim; expected one of: predict, ", "plan");
  expect_message("topology shwo dgx-h100",
                 "shwo: unknown command of attnsim topology; expected one of: list, check, show, "
                 "import, formats, export; did you mean show?");
  expect_message("topology", "A subcommand is required");
}

TEST(mistyped, flag) {
  const std::string layer = " dgx-h100 --seq 1K ";
  expect_message("predict dgx-h100 --seqq 1K",
                 "--seqq: unknown flag of attnsim predict; did you mean --seq?");
  expect_message("predict dgx-h100 --seqq=1K",
                 "--seqq: unknown flag of attnsim predict; did you mean --seq?");
  expect_message("predict dgx-h100 -seq 1K",
                 "-seq: unknown flag of attnsim predict; did you mean --seq?");
  expect_message("plan" + layer + "--schedule ring",
                 "--schedule: unknown flag of attnsim plan; did you mean --schedules?");
  expect_message("predict" + layer + "--kv_heads 8",
                 "--kv_heads: unknown flag of attnsim predict; did you mean --kv-heads?");
  expect_message("predict" + layer + "--what-is-this 8",
                 "--what-is-this: unknown flag of attnsim predict; see its --help");
  expect_message("topology show dgx-h100 --svgg x",
                 "--svgg: unknown flag of attnsim topology show; did you mean --svg?");
  expect_message("--verion", "--verion: unknown flag of attnsim; did you mean --version?");
}

TEST(mistaken, fields_of_another_scope) {
  if (run_program("validate --help").exit_code != 0)
    GTEST_SKIP() << "built without attnsim validate";
  const std::string attention = "validate star --ranks 2 --seq 1K ",
                    layer = attention + "--scope layer --model llama3-8b --tp 2 ";
  expect_message(attention + "--cp 2", "--cp: '2': expected with --scope layer");
  expect_message(attention + "--scope step", "--scope: 'step': expected one of: attention, layer");
  expect_message(layer + "--trace x.json", "--trace: 'x.json': expected without --scope layer");
  expect_message(layer + "--batch 2", "--batch: '2': expected without --scope layer");
  expect_message(layer + "--global-batch 8",
                 "--global-batch: '8': expected without --scope layer: it is of a whole step");
}

TEST(mistyped, argument_too_many) {
  expect_message("predict dgx-h100 p5 --seq 1K",
                 "'p5': expected no further argument of attnsim predict");
}

TEST(mistyped, name) {
  const std::string layer = "predict dgx-h100 --seq 1K ";
  expect_suggestion("predict dgx-h10 --seq 1K",
                    "cluster: 'dgx-h10': expected a file or one of: ", "dgx-h100");
  for (const auto& [flag, wrong, right] :
       std::vector<std::array<std::string, 3>>{{"--device", "h100-sxn5", "h100-sxm5"},
                                               {"--host", "pytorh", "pytorch"},
                                               {"--model", "lama3-8b", "llama3-8b"},
                                               {"--schedule", "rign", "ring"},
                                               {"--placement", "node-mayor", "node-major"},
                                               {"--kernel", "fa33", "fa3"},
                                               {"--tokens", "zig-zag", "zigzag"},
                                               {"--mask", "casual", "causal"},
                                               {"--dtype", "bf61", "bf16"},
                                               {"--pass", "foward", "forward"},
                                               {"--by", "analitic", "analytic"},
                                               {"--format", "jsno", "json"}}) {
    expect_suggestion(layer + flag + " " + wrong, flag + ": '" + wrong + "': expected ", right);
  }
  expect_suggestion("plan dgx-h100 --seq 1K --schedules ring,mehs",
                    "--schedule: 'mehs': expected one of: ", "mesh");
  expect_suggestion("plan dgx-h100 --seq 1K --emit megaton",
                    "--emit: 'megaton': expected one of: ", "megatron");
  expect_suggestion("reproduce nccl-test", "NAME: 'nccl-test': expected one of: ", "nccl-tests");
  expect_suggestion("topology import dgx-h100 --as slrum",
                    "--as: 'slrum': expected one of: ", "slurm");
  expect_suggestion("topology export dgx-h100 --to dott", "--to: 'dott': expected one of: ", "dot");
}

TEST(mistyped, key) {
  expect_message("predict dgx-h100 --seq 1K --set node.bandwith='1 GB/s'",
                 "--set: node.bandwith: unknown key; expected one of: links, bandwidth, latency; "
                 "did you mean bandwidth?");
  expect_message("plan dgx-h100 --seq 1K --what-if hedas=8..16",
                 "hedas: unknown key; expected a field of the question or a key of the cluster "
                 "file; did you mean heads?");
}

TEST(terminal, obeys_no_file) {
  const temporary_folder folder;
  const auto text = run_program("topology import dgx-h100 --quiet").output;
  const auto named = [&](const std::string& name) {
    return folder.write("c.yaml", text + "\n") + " --set 'name=\"" + name + "\"'";
  };
  expect_message("topology check " + named("\\e[31mred"),
                 "--set: name: '\\x1b[31mred': expected one line of UTF-8 text without control "
                 "characters");
  expect_message("predict --seq 1K --format json " + named("a\\nb"),
                 "--set: name: 'a\\nb': expected one line of UTF-8 text without control "
                 "characters");
  expect_message(
      "predict --seq 1K dgx-h100 --set name=$(printf '\\377')",
      "--set: name: '\\xff': expected one line of UTF-8 text without control characters");
  expect_message(
      "topology check $(printf '\\033[2J').yaml",
      "cluster: '\\x1b[2J.yaml': expected a file or one of: " +
          std::string("a3-mega, dgx-b200, dgx-h100, dgx-h200, gb200-nvl72, gb300-nvl72, hgx-h20, "
                      "mi300x-8, nc-a100-v4, nc-h100-v5, nd-a100-v4, nd-h100-v5, ndm-a100-v4, p4d, "
                      "p4de, p5, p5en, p6-b200, pcie-8, star"));
}

}  // namespace mistakes_test
}  // namespace attnsim
