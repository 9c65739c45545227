// The command line's contract: what scripts rely on.
#include "tests/cli/program.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/report/page_data.hpp"

namespace attnsim {
namespace program_test {

using nlohmann::json;

constexpr const char* problem = " --seq 128K --heads 32 --kv-heads 8 --head-dim 128 ";

TEST(predict, json_has_the_contract_keys) {
  const auto r = run_program(
      std::string("predict nd-h100-v5 --nodes 2 --schedule attention2d --grid 4x4 --format json") +
      problem);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto j = json::parse(r.output);
  EXPECT_EQ(j["cluster"], "nd-h100-v5");
  EXPECT_EQ(j["ranks"], 16);
  EXPECT_EQ(j["schedule"], "attention2d");
  EXPECT_EQ(j["grid"], json({4, 4}));
  for (const auto* key :
       {"schema", "tokens", "placement", "time_s", "time_interval_s", "compute_s",
        "exposed_communication_s", "host_s", "bytes_sent_per_rank", "peak_memory_bytes",
        "tflops_per_device", "bottleneck", "feasible", "warnings"}) {
    EXPECT_TRUE(j.contains(key)) << key;
  }
  EXPECT_LE(j["time_interval_s"][0], j["time_s"]);
  EXPECT_GE(j["time_interval_s"][1], j["time_s"]);
  EXPECT_NEAR(j["compute_s"].get<double>() + j["exposed_communication_s"].get<double>(),
              j["time_s"], 1e-9);
  EXPECT_TRUE(j["bottleneck"].contains("kind"));
  EXPECT_TRUE(j["bottleneck"].contains("name"));
}

TEST(predict, json_repeats_the_problem) {
  const std::string asked =
      "p5 --nodes 1 --seq 16K --model mistral-7b --window 1K --documents 8K*2 --pass forward "
      "--format json --quiet";
  const auto expected = json{{"seq", 16384},      {"padding", 0},
                             {"prefix", 0},       {"kv_seq", 0},
                             {"batch", 1},        {"heads", 32},
                             {"kv_heads", 8},     {"head_dim", 128},
                             {"v_head_dim", 128}, {"mask", "causal"},
                             {"window", 1024},    {"latent", false},
                             {"sinks", false},    {"documents", {8192, 8192}},
                             {"dtype", "bf16"},   {"wire_dtype", "bf16"},
                             {"keep_first", 0},   {"cache_lengths", json::array()},
                             {"pass", "forward"}};
  EXPECT_EQ(json::parse(run_program("predict " + asked).output)["problem"], expected);
  const auto plan = json::parse(run_program("plan --schedules ring " + asked).output);
  EXPECT_EQ(plan["problem"], expected);
  EXPECT_EQ(plan["candidates"][0]["problem"], expected);
  const auto prefilled = json::parse(
      run_program("predict p5 --nodes 1 --seq 16K --prefix 32K --pass forward --format json")
          .output);
  EXPECT_EQ(prefilled["problem"]["prefix"], 32768);
}

TEST(predict, equal_questions_have_equal_answers) {
  const auto answer = [](const std::string& flags) {
    return run_program("predict p5 --nodes 2 --seq 128K --kv-heads 8 --format json " + flags)
        .output;
  };
  for (const std::string schedule : {"ring", "attention2d", "hierarchical-allgather"}) {
    const auto asked = "--schedule " + schedule;
    EXPECT_EQ(answer(asked + " --documents 128K"), answer(asked)) << schedule;
    EXPECT_EQ(answer(asked + " --window 128K"), answer(asked)) << schedule;
    EXPECT_EQ(answer(asked + " --documents 64K*2 --window 64K"),
              answer(asked + " --documents 64K*2"))
        << schedule;
  }
}

TEST(predict, a_causal_mask_is_no_slower_than_none) {
  const auto time = [](const std::string& flags) {
    const auto r =
        run_program("predict p5 --nodes 2 --seq 256K --kv-heads 8 --format json " + flags);
    return json::parse(r.output)["time_s"].get<double>();
  };
  for (const std::string schedule :
       {"ring", "allgather", "attention2d", "mesh", "hierarchical-allgather", "startrail"}) {
    EXPECT_LE(time("--mask causal --schedule " + schedule),
              time("--mask full --schedule " + schedule))
        << schedule;
  }
}

TEST(predict, both_passes_add_up) {
  const auto time = [](const char* pass) {
    const auto r =
        run_program(std::string("predict p5 --nodes 2 --format json --pass ") + pass + problem);
    return json::parse(r.output)["time_s"].get<double>();
  };
  EXPECT_NEAR(time("both"), time("forward") + time("backward"), 1e-9);
  EXPECT_NEAR(time("recompute"), time("both") + time("forward"), 1e-9);
}

TEST(predict, one_rank_is_one_device) {
  const auto r = run_program(std::string("predict nd-h100-v5 --ranks 1 --format json") + problem);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto j = json::parse(r.output);
  EXPECT_EQ(j["bytes_sent_per_rank"]["max"], 0);
  EXPECT_EQ(j["exposed_communication_s"], 0);
}

TEST(predict, a_host_launches_what_is_short) {
  const std::string question =
      "predict dgx-h100 --nodes 1 --seq 4K --heads 8 --mask full --pass forward --format json";
  const auto alone = json::parse(run_program(question).output);
  const auto launched = json::parse(run_program(question + " --host pytorch").output);
  EXPECT_EQ(alone["host_s"], 0);
  EXPECT_GT(launched["host_s"], alone["time_s"]);
  EXPECT_GT(launched["time_s"], launched["host_s"]);  // by what runs after the last launch
  EXPECT_LT(launched["time_s"], launched["host_s"].get<double>() + alone["time_s"].get<double>());
  EXPECT_EQ(launched["compute_s"], alone["compute_s"]);
  EXPECT_EQ(launched["bottleneck"]["kind"], "host");
  EXPECT_EQ(launched["bottleneck"]["name"], "pytorch");
  const auto set = json::parse(run_program(question + " --set host=pytorch").output);
  EXPECT_EQ(set, launched);
}

TEST(predict, csv_has_a_header_and_a_row) {
  const auto r = run_program(std::string("predict p5 --nodes 2 --format csv") + problem);
  EXPECT_EQ(std::count(r.output.begin(), r.output.end(), '\n'), 2);
  EXPECT_TRUE(r.output.starts_with("schema,")) << r.output;
}

TEST(predict, closed_form_and_simulation_are_close_on_one_node) {
  const auto time = [](const char* by) {
    const auto r =
        run_program(std::string("predict dgx-h100 --nodes 1 --format json --by ") + by + problem);
    return json::parse(r.output)["time_s"].get<double>();
  };
  EXPECT_NEAR(time("simulation") / time("analytic"), 1, 0.3);
}

TEST(reference, is_the_committed_page) {
  const auto r = run_program("reference");
  if (r.output.find("## attnsim validate") == std::string::npos)
    GTEST_SKIP() << "built without attnsim validate";
  EXPECT_EQ(r.output, read_all("docs/commands.md"))
      << "to renew it: attnsim reference > docs/commands.md";
}

TEST(reference, of_figures_is_in_the_committed_page) {
  const auto r = run_program("reference figures");
  EXPECT_THAT(r.output, testing::StartsWith("| key | value | meaning |\n"));
  EXPECT_THAT(read_all("docs/files.md"), testing::HasSubstr("\n\n" + r.output + "\n"))
      << "to renew it: attnsim reference figures";
}

TEST(reference, of_a_step_is_in_the_committed_page) {
  const auto r = run_program("reference step");
  EXPECT_THAT(r.output, testing::StartsWith("| key | value | meaning |\n"));
  EXPECT_THAT(read_all("docs/files.md"), testing::HasSubstr("\n\n" + r.output + "\n"))
      << "to renew it: attnsim reference step";
}

TEST(step, json_has_the_contract_keys) {
  const auto r = run_program(
      "step dgx-h100 --nodes 1 --model llama3-8b --seq 8K --tp 4 --shard optimizer --recompute "
      "full "
      "--format json");
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto j = json::parse(r.output);
  for (const auto* key :
       {"step_time_s", "step_time_interval_s", "tokens_per_s_per_device", "model_tflops_per_device",
        "peak_memory_bytes", "memory", "parts", "feasible", "warnings"})
    EXPECT_TRUE(j.contains(key)) << key;
  for (const auto* part :
       {"matmul_s", "attention_s", "elementwise_s", "exposed_communication_s", "bubble_s"})
    EXPECT_TRUE(j["parts"].contains(part)) << part;
  for (const auto* kind :
       {"parameters", "gradients", "optimizer", "activations", "buffers", "workspace"})
    EXPECT_TRUE(j["memory"].contains(kind)) << kind;
}

TEST(step, out_of_memory_is_infeasible_and_printed_all_the_same) {
  const auto r = run_program("step dgx-h100 --nodes 1 --model llama3-70b --seq 8K --tp 8");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_THAT(r.output, testing::HasSubstr("warning: out of memory: needs "));
  EXPECT_THAT(r.messages, testing::StartsWith("attnsim: out of memory: needs "));
}

TEST(step, mistakes_name_the_flag) {
  const auto r = run_program("step dgx-h100 --nodes 1 --model llama3-8b --seq 8K --tp 3");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_THAT(r.messages, testing::StartsWith("attnsim: --tp: '3': tp x cp x pp x dp is 3 x "));
  EXPECT_EQ(run_program("step dgx-h100 --seq 8K").exit_code, 2);
}

TEST(plan, of_steps_ranks_them_and_says_what_it_ruled_out) {
  const auto r = run_program(
      "plan dgx-h100 --nodes 2 --scope step --model llama2-7b --seq 64K --global-batch 4 --top 3 "
      "--format json --quiet");
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto j = json::parse(r.output);
  EXPECT_EQ(j["schema"], "attnsim.step_plan.1");
  ASSERT_EQ(j["candidates"].size(), 3u);
  EXPECT_LE(j["candidates"][0]["step_time_s"], j["candidates"][1]["step_time_s"]);
  EXPECT_FALSE(j["rejected"].empty());
}

TEST(plan, of_steps_and_of_attention_have_fields_of_their_own) {
  const std::string plan = "plan dgx-h100 --nodes 1 --seq 8K ";
  EXPECT_EQ(run_program(plan + "--cp 2").messages,
            "attnsim: --cp: '2': expected with --scope step\n");
  EXPECT_EQ(run_program(plan + "--scope step --model llama2-7b --heads 8").messages,
            "attnsim: --heads: '8': expected without --scope step\n");
  EXPECT_EQ(run_program(plan + "--scope all").messages,
            "attnsim: --scope: 'all': expected one of: attention, step\n");
}

TEST(reference, of_the_problem_is_in_the_committed_page) {
  const auto r = run_program("reference problem");
  EXPECT_THAT(r.output, testing::StartsWith("| key | value | meaning |\n"));
  EXPECT_THAT(read_all("docs/files.md"), testing::HasSubstr("\n\n" + r.output + "\n"))
      << "to renew it: attnsim reference problem";
  EXPECT_EQ(run_program("reference figure").messages,
            "attnsim: WHAT: 'figure': expected one of: commands, man, figures, problem, step; did "
            "you mean "
            "figures?\n");
}

/// The page holds the very JSON that --format json prints.
TEST(report, is_written_by_what_answers_questions) {
  const temporary_folder folder;
  const auto file = folder.file("page.html");
  for (const auto& arguments : {std::string("predict dgx-h100 --nodes 1") + problem,
                                std::string("plan dgx-h100 --nodes 1 --schedules ring") + problem,
                                std::string("step p5 --nodes 1 --model llama3-8b --seq 8K"),
                                std::string("plan p5 --nodes 1 --scope step --model llama3-8b "
                                            "--seq 8K --global-batch 8"),
                                std::string("reproduce nccl-tests")}) {
    const auto r = run_program(arguments + " --format json --report " + file);
    ASSERT_TRUE(r.exit_code == 0 || r.exit_code == 3) << r.messages;
    EXPECT_EQ(report::data_of(read_all(file))["result"], nlohmann::ordered_json::parse(r.output))
        << arguments;
  }
}

/// Their kernels leave bf16, which is cast, merged by a call of its own and cast again; exchanges are a call for each tensor.
TEST(program, runs_schedules_as_frameworks_do) {
  if (run_program("validate --help").exit_code != 0) GTEST_SKIP() << "built without validate";
  for (const std::string how :
       {"ring-flash-attention --schedule ring --grid 4x1",
        "usp --schedule usp --grid 2x1 --ulysses 2", "torchtitan --schedule ring --grid 4x1"}) {
    const auto run = run_program(
        "validate star --nodes 4 --ranks 4 --seq 256 --heads 4 --head-dim 16 --repeats 1 --pass "
        "both --quiet "
        "--framework " +
        how);
    EXPECT_EQ(run.exit_code, 0) << how << ": " << run.messages;
  }
}

TEST(report, of_a_real_run_has_both_timelines) {
  const temporary_folder folder;
  const auto file = folder.file("page.html");
  const auto r = run_program(
      "validate star --ranks 2 --seq 64 --heads 2 --head-dim 16 --repeats 1 --format json "
      "--report " +
      file);
  if (r.messages.find("validate") != std::string::npos) GTEST_SKIP() << r.messages;
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto data = report::data_of(read_all(file));
  EXPECT_EQ(data["result"], nlohmann::ordered_json::parse(r.output));
  EXPECT_EQ(data["charts"][0]["rows"][0]["measured"], data["result"]["measured"]["time_s"]);
  EXPECT_EQ(data["charts"][2]["lanes"][0], "compute predicted");
  EXPECT_EQ(data["charts"][2]["lanes"][1], "compute measured");
}

TEST(report, needs_a_file_that_can_be_written) {
  const auto r =
      run_program(std::string("predict dgx-h100 --nodes 1 --report /nowhere/page.html") + problem);
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(
      r.messages,
      "attnsim: --report: '/nowhere/page.html': expected a file in a folder that can be written "
      "(/nowhere: No such file or directory)\n");
}

/// Perfetto's rules: on a thread of a process one thing after another. The last ends when the
/// prediction says.
TEST(predict, traces_what_it_simulates) {
  const temporary_folder folder;
  const auto file = folder.file("trace.json");
  const auto r = run_program(std::string("predict dgx-h100 --nodes 1 --format json --trace ") +
                             file + problem);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto trace = json::parse(std::ifstream(file));
  std::map<std::pair<int, int>, double> until;
  double end = 0;
  bool has_load = false;
  for (const auto& e : trace["traceEvents"]) {
    has_load = has_load || e["ph"] == "C";
    if (e["ph"] != "X") continue;
    auto& before = until[{e["pid"], e["tid"]}];
    EXPECT_GE(e["ts"].get<double>(), before - 1e-6);
    before = e["ts"].get<double>() + e["dur"].get<double>();
    end = std::max(end, before);
  }
  EXPECT_TRUE(has_load);
  EXPECT_NEAR(end * 1e-6, json::parse(r.output)["time_s"].get<double>(), 2e-9);
}

TEST(predict, no_trace_where_it_cannot_be_written) {
  const auto r =
      run_program(std::string("predict dgx-h100 --nodes 1 --trace /nowhere/t.json") + problem);
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.messages,
            "attnsim: --trace: '/nowhere/t.json': expected a file in a folder that can be written "
            "(/nowhere: No such file or directory)\n");
}

TEST(plan, ranks_candidates) {
  const auto r =
      run_program(std::string("plan nd-h100-v5 --nodes 2 --format json --top 3") + problem);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto candidates = json::parse(r.output)["candidates"];
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_LE(candidates[0]["time_s"], candidates[1]["time_s"]);
  EXPECT_LE(candidates[1]["time_s"], candidates[2]["time_s"]);
}

TEST(plan, keeps_to_the_schedules_asked_for) {
  const auto r = run_program(
      std::string("plan nd-h100-v5 --nodes 1 --format json --schedules ring") + problem);
  const auto answer = json::parse(r.output);
  ASSERT_FALSE(answer["candidates"].empty()) << r.messages;
  for (const auto& c : answer["candidates"]) EXPECT_EQ(c["schedule"], "ring");
}

TEST(plan, emits_settings_of_the_best_that_the_framework_can_do) {
  const auto r = run_program(
      std::string("plan nd-h100-v5 --nodes 2 --schedules usp,ring --ulysses 8 --emit megatron") +
      problem);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  EXPECT_NE(r.output.find("--context-parallel-size 16\n--cp-comm-type a2a+p2p\n"
                          "--hierarchical-context-parallel-sizes 8 2\n"),
            std::string::npos)
      << r.output;
}

/// What a terminal gets to see.
std::string on_terminal(const std::string& environment) {
  const temporary_folder folder;
  const auto command = environment +
                       " script -qec '" ATTNSIM_PROGRAM
                       " predict dgx-h100 --nodes 1 --seq 16K' /dev/null >" +
                       folder.file("out") + " </dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read_all(folder.file("out"));
}

TEST(terminal, colours_bars_unless_told_not_to) {
  EXPECT_NE(on_terminal("NO_COLOR=").find("[\033[34m####"), std::string::npos);
  const auto plain = on_terminal("NO_COLOR=1");
  EXPECT_NE(plain.find("[####"), std::string::npos);
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  EXPECT_EQ(run_program("predict dgx-h100 --nodes 1 --seq 16K").output.find('\033'),
            std::string::npos);
}

/// A simulation that takes seconds tells how far it is; --quiet does not.
TEST(terminal, sees_the_progress_of_a_long_prediction) {
  const auto messages = [](const std::string& flags) {
    const temporary_folder folder;
    const auto command =
        "script -qec '" ATTNSIM_PROGRAM
        " predict nd-h100-v5 --nodes 128 --seq 1M --schedule ring --tokens striped "
        "--pass forward " +
        flags + " >" + folder.file("answer") + "' /dev/null >" + folder.file("messages") +
        " </dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_all(folder.file("messages"));
  };
  EXPECT_THAT(messages(""), testing::ContainsRegex(R"(\] [0-9]+ of [0-9]+ operations, )"));
  EXPECT_EQ(messages("--quiet"), "");
}

TEST(plan, what_if_has_a_row_a_value) {
  const auto r = run_program(std::string("plan star --nodes 4 --schedules ring,attention2d "
                                         "--what-if 'nics.bandwidth=100 Gb/s..400 Gb/s'") +
                             problem);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  for (const auto* value : {"100 Gb/s", "200 Gb/s", "400 Gb/s"})
    EXPECT_NE(r.output.find(value), std::string::npos) << r.output;
}

TEST(plan, what_if_as_json_csv_and_page_has_the_same_times) {
  const temporary_folder folder;
  const auto file = folder.file("page.html");
  const auto asked = std::string(
                         "plan star --nodes 4 --schedules ring,attention2d "
                         "--what-if 'nics.bandwidth=100 Gb/s..200 Gb/s'") +
                     problem;
  const auto answer = json::parse(run_program(asked + "--format json --report " + file).output);
  ASSERT_EQ(answer["values"].size(), 2u);
  const double ring = answer["values"][1]["time_s"]["ring"];
  EXPECT_LE(answer["values"][1]["best"]["time_s"], ring);
  EXPECT_NE(run_program(asked + "--format csv").output.find("\n200 Gb/s,ring,"), std::string::npos);
  EXPECT_NE(read_all(file).find(R"({"name":"ring","values":[)"), std::string::npos);
}

TEST(plan, explains_what_was_rejected) {
  const auto r = run_program(
      std::string("plan p5 --nodes 1 --schedules ring,attention2d --explain") + problem);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  for (const auto* part :
       {"if network faster by", "or from node.bandwidth", "launch order:", "torchtitan",
        "--cp-comm-type", "runs on one column of ranks", "one rank:"})
    EXPECT_NE(r.output.find(part), std::string::npos) << part << "\n" << r.output;
}

TEST(plan, quiet_writes_nothing_to_stderr) {
  EXPECT_EQ(run_program(std::string("plan p5 --nodes 1 --quiet") + problem).messages, "");
}

TEST(program, commands_without_notes_take_quiet_too) {
  for (const auto* command : {"schedules", "completion", "reference", "topology list"})
    EXPECT_EQ(run_program(std::string(command) + " --quiet").exit_code, 0) << command;
}

TEST(reproduce, writes_tables_json_and_csv) {
  const auto table = run_program("reproduce nccl-tests");
  ASSERT_EQ(table.exit_code, 0) << table.messages;
  EXPECT_NE(table.output.find("mean error"), std::string::npos);
  const auto answer = json::parse(run_program("reproduce nccl-tests --format json").output);
  ASSERT_EQ(answer.size(), 1u);
  const auto point = answer[0]["points"][0];
  EXPECT_DOUBLE_EQ(point["error"].get<double>(),
                   point["predicted"].get<double>() / point["published"].get<double>() - 1);
  EXPECT_EQ(run_program("reproduce nccl-tests --format csv")
                .output.find("study,series,figure,published,predicted,error,fitted\nnccl-tests,"),
            0u);
}

TEST(topology, lists_shows_and_checks) {
  EXPECT_NE(run_program("topology list").output.find("gb200-nvl72"), std::string::npos);
  EXPECT_EQ(run_program("topology show nd-h100-v5").exit_code, 0);
  EXPECT_EQ(run_program("topology check nd-h100-v5 --nodes 2").exit_code, 0);
}

TEST(program, help_version_and_completion) {
  EXPECT_EQ(run_program("--version").output, "attnsim 0.2.0\n");
  EXPECT_NE(run_program("predict --help").output.find("Examples:"), std::string::npos);
  EXPECT_NE(run_program("plan --help").output.find("Examples:"), std::string::npos);
  const temporary_folder folder;
  const auto script = folder.write("completion", run_program("completion").output);
  EXPECT_EQ(std::system(("bash -n " + script).c_str()), 0);
}

// --- Mistakes: one exact line each, exit 2 for bad input, 3 for what is infeasible, nothing on stdout. ---------------

struct mistake {
  const char* arguments;
  int exit_code;
  const char* message;
};

class mistakes : public testing::TestWithParam<mistake> {};

TEST_P(mistakes, are_told_in_one_line) {
  const auto r = run_program(GetParam().arguments);
  EXPECT_EQ(r.exit_code, GetParam().exit_code) << GetParam().arguments;
  EXPECT_EQ(r.messages, "attnsim: " + std::string(GetParam().message) + "\n")
      << GetParam().arguments;
  EXPECT_EQ(r.output, "");
}

INSTANTIATE_TEST_SUITE_P(
    flags, mistakes,
    testing::Values(
        mistake{"predict p5 --seq abc", 2,
                "--seq: 'abc': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"predict p5 --seq 0", 2,
                "--seq: '0': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"predict p5 --seq -5", 2,
                "--seq: '-5': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"predict p5 --seq 128K --heads 0", 2,
                "--heads: '0': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"predict p5 --seq 128K --batch 1.5", 2,
                "--batch: '1.5': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"predict p5 --seq 128K --heads 32 --kv-heads 5", 3,
                "--kv-heads: '5': does not divide 32 heads; feasible: 1, 2, 4, 8, 16, 32"},
        mistake{"predict p5 --seq 128K --mask sliding", 2,
                "--mask: 'sliding': expected one of: full, causal"},
        mistake{"predict p5 --seq 8 --cache-lengths 64K,4K --pass forward", 3,
                "--schedule: 'ring': no grid of 64 ranks will do; has a cache of one length (of "
                "several: schedules that decode, such as helix)"},
        mistake{
            "predict p5 --seq 1 --cache-lengths lognormal:mean=4K,sigma=1,count=8 --pass forward",
            2,
            "--cache-lengths: 'mean=4K,sigma=1,count=8': expected max= as well: "
            "lognormal:mean=N,sigma=X,max=N,count=N"},
        mistake{"predict p5 --seq 128K --keys-sent latent --pass forward", 3,
                "--schedule: 'ring': no grid of 64 ranks will do; has no latents to send: expected "
                "a model with latent attention"},
        mistake{"predict p5 --seq 128K --keep-first 4", 2,
                "--keep-first: '4': expected with a sliding window"},
        mistake{"predict p5 --seq 128K --mask full --window 8", 2,
                "--window: '8': expected a causal mask with a sliding window"},
        mistake{"predict p5 --seq 128K --documents 64K,32K", 2,
                "--documents: '98304': expected lengths that add up to the sequence's 131072"},
        mistake{"predict p5 --nodes 1 --seq 128K --tp 3", 3, "--tp: '3': does not divide 8 ranks"},
        mistake{"predict p5 --nodes 1 --seq 128K --kv-heads 2 --tp 4", 3,
                "--tp: '4': does not divide 2 K/V heads"},
        mistake{
            "predict p5 --nodes 1 --seq 128K --heads 5 --schedule ulysses", 3,
            "--schedule: 'ulysses': no grid of 8 ranks will do; ulysses 8 does not suit 5 "
            "query and 5 K/V heads a rank; even degrees: 1, 5; on more ranks: usp, a ring around "
            "it, or attention2d"},
        mistake{
            "plan p5 --seq 8K --prefix 128K", 2,
            "--pass: 'both': expected forward: the tokens of a cached prefix have no gradients"},
        mistake{"predict p5 --seq 8K --prefix 1001 --pass forward", 3,
                "--prefix: '1001': not a multiple of 128, as zigzag tokens over 64 ranks need; "
                "nearest: 896 and 1024"},
        mistake{"predict p5 --seq 8K --prefix some --pass forward", 2,
                "--prefix: 'some': expected a whole number of at least 0, such as 8, 128K or 1M"},
        mistake{"predict p5 --seq 8K --kv-seq 1K --mask causal", 2,
                "--kv-seq: '1024': expected a full mask with keys of another sequence"},
        mistake{
            "plan p5 --seq 128K --emit jax", 2,
            "--emit: 'jax': expected one of: megatron, trtllm, usp, xdit, "
            "ring-flash-attention, torchtitan, magiattention, vllm, sglang, maxtext, vllm-omni, "
            "sglang-diffusion, diffusers"},
        mistake{"plan p5 --seq 128K --what-if seq", 2,
                "--what-if: 'seq': expected key=from..to, such as seq=64K..1M or "
                "nics.bandwidth=\"100 Gb/s\"..\"1600 Gb/s\""},
        mistake{"predict p5 --seq 128K --dtype int8", 2,
                "--dtype: 'int8': expected one of: bf16, fp16, fp32, fp8"},
        mistake{"predict p4d --seq 128K --dtype fp8 --pass forward", 3,
                "--dtype: 'fp8': a100-sxm4-40gb has no such products; expected bf16, fp16 or fp32"},
        mistake{"predict p5 --seq 128K --wire-dtype fp32", 2,
                "--wire-dtype: 'fp32': expected one of: bf16, fp16, fp8"},
        mistake{"predict p5 --seq 128K --pass sideways", 2,
                "--pass: 'sideways': expected one of: forward, backward, both, recompute"},
        mistake{"predict p5 --seq 128K --tokens random", 2,
                "--tokens: 'random': expected one of: contiguous, zigzag, zigzag-stream, striped"},
        mistake{"predict p5 --seq 128K --format xml", 2,
                "--format: 'xml': expected one of: table, json, csv"},
        mistake{"predict p5 --seq 128K --by guess", 2,
                "--by: 'guess': expected one of: simulation, analytic"},
        mistake{"predict p5 --seq 128K --kv-order up", 2,
                "--kv-order: 'up': expected one of: direct, transposed"},
        mistake{"predict p5 --seq 128K --kv-order transposed", 2,
                "--kv-order: 'transposed': expected with a schedule that reads it: attention2d, "
                "attention2d-overlap"},
        mistake{"predict p5 --seq 128K --reduction all-to-all", 2,
                "--reduction: 'all-to-all': expected with a schedule that reads it: attention2d, "
                "composed"},
        mistake{
            "plan p5 --seq 128K --schedules ring,mesh --reduction ring", 2,
            "--reduction: 'ring': expected with a schedule that reads it: attention2d, composed"},
        mistake{"predict p5 --seq 128K --partials fp32", 2,
                "--partials: 'fp32': expected with a schedule that reads it: attention2d, "
                "attention2d-overlap, mesh, startrail, tokenring, passq-ring, "
                "passq-allgather, helix, dcp, dcp-a2a, composed"},
        mistake{"plan p5 --seq 128K --schedules ulysses --gradients fp32", 2,
                "--gradients: 'fp32': expected with a schedule that reads it: ring, allgather, "
                "attention2d, attention2d-overlap, mesh, usp, ulysses-allgather, double-ring, "
                "startrail, burst, "
                "tokenring, hierarchical-allgather, passq-ring, passq-allgather, halo, "
                "composed"},
        mistake{"plan p5 --seq 128K --what-if heads=8..16 --emit megatron", 2,
                "--emit: 'megatron': expected without --what-if, which ranks several problems"},
        mistake{"plan p5 --seq 128K --what-if heads=8..16 --explain", 2,
                "--explain: expected without --what-if, which ranks several problems"},
        mistake{"plan p5 --seq 128K --emit megatron --explain", 2,
                "--explain: expected without --emit, which prints settings alone"},
        mistake{"plan p5 --seq 128K --explain --format json", 2,
                "--explain: expected with --format table"},
        mistake{"plan p5 --seq 128K --schedules ''", 2,
                "--schedules: '': expected names, as attnsim schedules lists them"},
        mistake{"predict p5 --seq 128K --reduction tree", 2,
                "--reduction: 'tree': expected one of: ring, all-to-all"},
        mistake{"predict p5 --seq 128K --grid 4by4", 2,
                "--grid: '4by4': expected ROWSxCOLUMNS, such as 8x4"},
        mistake{"predict p5 --seq 128K --nodes two", 2,
                "--nodes: 'two': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"predict p5 --seq 128K --set nodes", 2, "--set: 'nodes': expected key.path=value"},
        mistake{"predict p5 --nodes 2 --seq 128K --schedule attention2d --grid 4x2", 3,
                "--grid: '4x2': has 8 ranks, the cluster 16; feasible: 16x1, 8x2, 4x4, 2x8, 1x16"},
        mistake{"predict p5 --nodes 1 --seq 128K --schedule ring --grid 4x2", 3,
                "--grid: '4x2': ring runs on one column of ranks; feasible: 8x1"},
        mistake{"predict p5 --nodes 1 --seq 128K --schedule attention2d --grid 4x2 --kv-order "
                "transposed",
                3,
                "--grid: '4x2': attention2d needs a square grid for the transposed K/V order; "
                "feasible: none"},
        mistake{"predict p5 --nodes 1 --seq 1001", 3,
                "--seq: '1001': not a multiple of 16, as zigzag tokens over 8 ranks need; pad by 7 "
                "to 1008 "
                "(0.7 % more tokens, 1.4 % more work) or cut to 992; striped tokens take 1000"},
        mistake{"predict p5 --nodes 1 --seq 128K --ranks 9", 3,
                "--ranks: '9': p5 has 8 devices; feasible: 1 to 8, or more with more nodes"},
        mistake{"predict p5 --nodes 1 --seq 128K --placement diagonal", 2,
                "--placement: 'diagonal': expected one of: node-major, row-in-node, "
                "column-in-node, tile-in-node, rails, tile:RxC, custom:LIST"},
        mistake{"predict p5 --nodes 1 --seq 128K --ranks 2 --placement custom:0,0", 2,
                "--placement: 'custom:0,0': expected custom: and 2 distinct devices of 0 to 7"},
        mistake{"plan p5 --seq 128K --top none", 2,
                "--top: 'none': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"plan p5 --nodes 1 --seq 1001", 3,
                "--seq: '1001': not a multiple of 16, as zigzag tokens over 8 ranks need; pad by 7 "
                "to 1008 "
                "(0.7 % more tokens, 1.4 % more work) or cut to 992; striped tokens take 1000"}));

TEST(mistakes, unknown_model_lists_the_known) {
  const auto r = run_program("predict p5 --seq 128K --model llama9");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(r.messages.starts_with(
      "attnsim: --model: 'llama9': expected a config.json or one of: llama2-7b, llama2-13b, "))
      << r.messages;
  EXPECT_EQ(std::count(r.messages.begin(), r.messages.end(), '\n'), 1);
}

TEST(mistakes, unknown_schedule_lists_the_known) {
  const auto r = run_program("predict p5 --seq 128K --schedule spiral");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(r.messages.starts_with(
      "attnsim: --schedule: 'spiral': expected one of: ring, allgather, attention2d, "))
      << r.messages;
}

TEST(mistakes, unknown_cluster_lists_the_shipped) {
  const auto r = run_program("predict my-cluster --seq 128K");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_NE(r.messages.find("'my-cluster': expected a file or one of: a3-mega, dgx-b200, dgx-h100"),
            std::string::npos)
      << r.messages;
}

TEST(mistakes, missing_and_unknown_flags) {
  EXPECT_EQ(run_program("predict p5").exit_code, 2);
  EXPECT_EQ(run_program("predict p5 --seq 128K --colour blue").exit_code, 2);
  EXPECT_EQ(run_program("").exit_code, 2);
}

TEST(mistakes, unknown_study_lists_the_studies) {
  const auto r = run_program("reproduce attention3d");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.messages.find("attnsim: NAME: 'attention3d': expected one of: attention2d-a100, "),
            0u);
}

TEST(mistakes, in_a_cluster_file_name_file_and_line) {
  const temporary_folder folder;
  const auto file = folder.write(
      "c.yaml",
      "name: c\ndevice: h100-sxm5\nnodes: 2\ndevices_per_node: 8\n"
      "node: {links: nvswitch, bandwidth: 450 GB, latency: 1 us}\n"
      "nics: {per_node: 8, bandwidth: 400 Gb/s, latency: 1 us}\nfabric: {kind: star}\n");
  const auto r = run_program("predict " + file + " --seq 128K");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.messages,
            "attnsim: " + file +
                ":5: node.bandwidth: '450 GB': expected a bandwidth with its unit, such as "
                "'400 Gb/s' or '50 GB/s'\n");
}

TEST(mistakes, memory_that_does_not_fit_is_told_whatever_else_there_is_to_warn_of) {
  const auto r = run_program("predict star --nodes 2 --seq 8M --heads 64 --schedule ring");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_NE(r.output.find("warning                 device ideal: "), std::string::npos);
  EXPECT_TRUE(r.messages.starts_with("attnsim: ring 2x1 needs ")) << r.messages;
  EXPECT_TRUE(r.messages.ends_with(" memory; try more ranks, a smaller batch or attnsim plan\n"))
      << r.messages;
}

TEST(mistakes, memory_that_does_not_fit_is_infeasible_but_printed) {
  const auto r = run_program("predict nd-a100-v4 --nodes 1 --seq 4M --heads 128 --format json");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_FALSE(json::parse(r.output)["feasible"].get<bool>());
  EXPECT_NE(r.messages.find("of the device's"), std::string::npos);
}

}  // namespace program_test
}  // namespace attnsim
