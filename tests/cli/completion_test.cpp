// What a shell offers after the words typed so far.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/program.hpp"

namespace attnsim {
namespace completion_test {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// `words` as a shell would give them, the last as far as it is typed.
std::vector<std::string> offered(const std::string& words) {
  const auto r = run_program("complete " + words);
  EXPECT_EQ(r.exit_code, 0) << words;
  EXPECT_EQ(r.messages, "") << words;
  return lines_of(r.output);
}

TEST(completion, of_commands) {
  EXPECT_THAT(offered("pl"), ElementsAre("plan"));
  EXPECT_THAT(offered("topology ''"), Contains("show"));
  EXPECT_THAT(offered("topology s"), ElementsAre("show"));
  EXPECT_THAT(offered("''"), Contains("predict"));
  EXPECT_THAT(offered("comple"), ElementsAre("completion"));
}

TEST(completion, of_flags) {
  EXPECT_THAT(offered("predict p5 --se"), ElementsAre("--set", "--seq"));
  EXPECT_THAT(offered("plan p5 --schedules ring --to"), ElementsAre("--tokens", "--top"));
  EXPECT_THAT(offered("--ver"), ElementsAre("--version"));
}

TEST(completion, of_values) {
  EXPECT_THAT(offered("predict p5 --mask ''"), ElementsAre("full", "causal"));
  EXPECT_THAT(offered("predict p5 --mask ca"), ElementsAre("causal"));
  EXPECT_THAT(offered("predict p5 --mask = ca"), ElementsAre("causal"));  // bash splits there
  EXPECT_THAT(offered("predict p5 --schedule attention2d"),
              ElementsAre("attention2d", "attention2d-overlap"));
  EXPECT_THAT(offered("plan p5 --schedules ring,att"),
              ElementsAre("ring,attention2d", "ring,attention2d-overlap"));
  EXPECT_THAT(offered("predict p5 --format ''"), ElementsAre("table", "json", "csv"));
  EXPECT_THAT(offered("predict p5 --by sim"), ElementsAre("simulation"));
  EXPECT_THAT(offered("predict p5 --placement node"), ElementsAre("node-major"));
  EXPECT_THAT(offered("predict p5 --model llama3"), Contains("llama3-8b"));
  EXPECT_THAT(offered("predict p5 --device h100"), Contains("h100-sxm5"));
  EXPECT_THAT(offered("predict p5 --host pyt"), ElementsAre("pytorch"));
  EXPECT_THAT(offered("plan p5 --emit mega"), ElementsAre("megatron"));
  EXPECT_THAT(offered("reproduce nccl-t"), ElementsAre("nccl-tests"));
  EXPECT_THAT(offered("topology export p5 --to graph"), ElementsAre("graphml"));
  EXPECT_THAT(offered("topology import f --as nccl-t"), ElementsAre("nccl-topology"));
  EXPECT_THAT(offered("completion z"), ElementsAre("zsh"));
}

TEST(completion, of_clusters_before_and_between_flags) {
  EXPECT_THAT(offered("predict nd-h"), Contains("nd-h100-v5"));
  EXPECT_THAT(offered("predict --seq 1K nd-h"), Contains("nd-h100-v5"));
  EXPECT_THAT(offered("plan ./my"), IsEmpty());  // the shell completes files
  EXPECT_THAT(offered("predict p5 --trace ''"), IsEmpty());
  EXPECT_THAT(offered("predict p5 --seq ''"), IsEmpty());
}

TEST(completion, keeps_to_itself_what_scripts_call) {
  EXPECT_THAT(offered("''"), Not(Contains("complete")));
  EXPECT_EQ(run_program("--help").output.find("  complete "), std::string::npos);
}

/// The function itself, in a bash that has the words of a command line.
TEST(completion, in_bash) {
  const auto ask = [](const std::string& words, int at) {
    const temporary_folder folder;
    const auto script = folder.write(
        "ask.sh", "source <(" ATTNSIM_PROGRAM " completion)\nCOMP_WORDS=(" ATTNSIM_PROGRAM " " +
                      words + ")\nCOMP_CWORD=" + std::to_string(at) +
                      "\n_attnsim\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const auto out = folder.file("out");
    EXPECT_EQ(std::system(("bash " + script + " >" + out).c_str()), 0);
    return lines_of(read_all(out));
  };
  EXPECT_THAT(ask("pl", 1), ElementsAre("plan"));
  EXPECT_THAT(ask("predict --mask ''", 3), ElementsAre("full", "causal"));
  EXPECT_THAT(ask("predict nd-h100 --seq 1K", 2), Contains("nd-h100-v5"));
}

TEST(completion, has_a_script_a_shell) {
  const auto first_word = [](const std::string& shell) {
    const auto text = run_program("completion " + shell).output;
    return text.substr(0, text.find_first_of(" ("));
  };
  EXPECT_EQ(first_word("bash"), "_attnsim");
  EXPECT_EQ(first_word("zsh"), "#compdef");
  EXPECT_EQ(first_word("fish"), "complete");
  const auto r = run_program("completion fissh");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.messages,
            "attnsim: SHELL: 'fissh': expected one of: bash, zsh, fish; did you mean fish?\n");
}

}  // namespace completion_test
}  // namespace attnsim
