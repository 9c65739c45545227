// attnsim calibrate and compare as a user runs them, on the measurements in reproduce/measured.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/cluster/cluster.hpp"
#include "tests/cli/program.hpp"
#include "tests/report/page_data.hpp"
#include "tests/shared_files.hpp"

namespace attnsim {
namespace calibration_commands_test {

using testing::HasSubstr;
using testing::StartsWith;

const std::string results = "reproduce/measured/h200/";
const std::string fit = results + "fit_host_memory.json@tests/gpu/two-h100-host-memory.yaml";

class calibration_commands : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  void expect_bad(const std::string& arguments, const std::string& message) const {
    const auto r = run_program(arguments);
    EXPECT_EQ(r.exit_code, 2) << arguments;
    EXPECT_EQ(r.output, "");
    EXPECT_EQ(r.messages, "attnsim: " + message + "\n");
  }

  temporary_folder folder_;
};

TEST_F(calibration_commands, a_fitted_profile_predicts_what_was_held_out) {
  const auto profile = folder_.file("mine.yaml");
  const auto fitted = run_program("calibrate --device h200-sxm5 --measurements " + fit +
                                  " --name mine --out " + profile);
  ASSERT_EQ(fitted.exit_code, 0) << fitted.messages;
  EXPECT_THAT(fitted.output, HasSubstr("transports.pcie.efficiency"));
  EXPECT_THAT(fitted.output, HasSubstr("kept from the prior\n  memory efficiency, kernel launch"));
  EXPECT_THAT(read_all(profile), HasSubstr("\nname: mine\n"));
  const auto compared = run_program("compare tests/gpu/two-h100-host-memory.yaml " + results +
                                    "held_out_host_memory.json --device " + profile +
                                    " --format json --points " + folder_.file("points.csv"));
  ASSERT_EQ(compared.exit_code, 0) << compared.messages;
  const auto result = nlohmann::json::parse(compared.output);
  for (const auto& part : result["parts"]) {
    EXPECT_LT(part["median_error"].get<double>(), 0.05) << part["part"];
    EXPECT_GT(part["points"].get<int>(), 15);
  }
  EXPECT_THAT(read_all(folder_.file("points.csv")),
              StartsWith("part,what,predicted_us,low_us,high_us,"));
}

/// 3, 1 and 2 ms in three files of one case: their median, 2 ms, is one point.
TEST_F(calibration_commands, runs_of_one_case_count_together) {
  std::string files;
  for (const auto* time : {"0.003", "0.001", "0.002"}) {
    const nlohmann::json run{
        {"case", "--seq 4K --heads 8 --schedule ring --pass forward --kernel cuda"},
        {"kernel", "attnsim-cuda"},
        {"start", "idle"},
        {"durations_s", {{"forward", {std::stod(time)}}}}};
    files += ' ' + write(std::string(time) + ".jsonl", run.dump() + "\n");
  }
  const auto points = folder_.file("points.csv");
  const auto r = run_program("compare tests/gpu/two-h100.yaml" + files + " --points " + points);
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto rows = read_all(points);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 2) << rows;
  EXPECT_THAT(rows, HasSubstr(",2000,"));
}

TEST_F(calibration_commands, layers_that_ran_are_compared) {
  const nlohmann::json run{{"schema", "attnsim.layer_validation.1"},
                           {"case", "--model llama3-8b --seq 8K --tp 2"},
                           {"kernel", "attnsim-cuda"},
                           {"start", "in-sequence"},
                           {"durations_s", {{"forward", {1.0, 3.0, 2.0}}, {"backward", {5.0}}}}};
  auto by_kind = run;
  by_kind["case"] = "--model llama3-8b --seq 4K --tp 2";
  const nlohmann::json part{{"name", "matmul"}, {"measured_s", 0.5}};
  const nlohmann::json forward{{"name", "forward"}, {"parts", nlohmann::json::array({part})}};
  by_kind["passes"] = nlohmann::json::array({forward});
  const auto r =
      run_program("compare tests/gpu/two-h100.yaml " +
                  write("runs.jsonl", run.dump() + "\n" + by_kind.dump() + "\n") + " --format csv");
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  EXPECT_THAT(r.output, HasSubstr("\nlayers,two-h100: --model llama3-8b --seq 8K --tp 2,"));
  EXPECT_THAT(r.output, HasSubstr(",7e+06,"));  // medians of both passes, in us
  EXPECT_THAT(r.output,
              HasSubstr("\nmatmul of layers,\"two-h100: --model llama3-8b --seq 4K --tp 2, "
                        "forward\","));
  EXPECT_THAT(r.output, HasSubstr(",5e+05,"));
}

/// attention2d on one column is allgather: which of the two is faster is chance. The ring is predicted to be faster.
TEST_F(calibration_commands, one_program_under_two_names_is_one_contestant) {
  const auto named_right = [&](double allgather, double attention2d, double ring) {
    std::string lines;
    const std::pair<std::string, double> runs[] = {
        {"allgather", allgather}, {"attention2d", attention2d}, {"ring", ring}};
    for (const auto& [schedule, time] : runs) {
      const nlohmann::json run{
          {"case", "--seq 4K --heads 8 --pass forward --grid 2x1 --schedule " + schedule},
          {"kernel", "cpu"},
          {"start", "in-sequence"},
          {"durations_s", {{"forward", {time}}}}};
      lines += run.dump() + "\n";
    }
    const auto r = run_program("compare tests/gpu/two-h100.yaml " + write("runs.jsonl", lines));
    return r.output.substr(r.output.rfind("\n", r.output.size() - 2) + 1);
  };
  EXPECT_THAT(named_right(1.2e-3, 1.0e-3, 0.9e-3), HasSubstr("right in 1 of 1 problems"));
  EXPECT_THAT(named_right(1.2e-3, 1.0e-3, 1.5e-3), HasSubstr("right in 0 of 1 problems"));
  EXPECT_THAT(named_right(1.2e-3, 1.0e-3, 1.11e-3), StartsWith("schedules"));  // 1.1 and 1.11
}

/// Two steps of a ring on rank 0 of 2.
TEST_F(calibration_commands, a_trace_is_compared_operation_by_operation) {
  const auto kernel = [](const std::string& name, int stream, double start, double duration) {
    return nlohmann::json{{"ph", "X"},       {"cat", "kernel"},
                          {"name", name},    {"ts", start},
                          {"dur", duration}, {"args", {{"device", 0}, {"stream", stream}}}};
  };
  const nlohmann::json trace{
      {"distributedInfo", {{"rank", 0}}},
      {"traceEvents",
       {kernel("ncclDevKernel_SendRecv(x)", 20, 0, 500), kernel("flash_fwd_kernel", 7, 10, 1700),
        kernel("flash_fwd_kernel", 7, 1715, 1650)}}};
  const auto file = write("trace.json", trace.dump());
  const auto run = "compare tests/gpu/two-h100.yaml " + file;
  const std::string line = "--seq 16K --heads 32 --mask full --schedule ring --kernel attnsim-cuda";
  const auto r = run_program(run + " --format json --case \"" + line + " --pass forward\"");
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  const auto points = nlohmann::json::parse(r.output)["points"];
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0]["what"], file + ": rank 0, operation 0 (shift)");
  EXPECT_NEAR(points[0]["measured_s"].get<double>(), 500e-6, 1e-9);
  EXPECT_NEAR(points[3]["measured_s"].get<double>(), 3365e-6, 1e-9);
  const auto of_two = run_program("compare dgx-h100 " + file + " --format csv --case \"" + line +
                                  " --pass forward --ranks 2\"");
  ASSERT_EQ(of_two.exit_code, 0) << of_two.messages;
  EXPECT_EQ(std::count(of_two.output.begin(), of_two.output.end(), '\n'), 5) << of_two.output;
  expect_bad(
      run + " --case \"" + line + " --pass forward --ranks 1\"",
      file + ": the trace has 1 sends and receives, a pass of the schedule 0: expected none");
  expect_bad(
      run,
      "--case: '': expected the traced run's flags, as \"--seq 16K --heads 32 --schedule ring\"");
  expect_bad(run + " --case \"" + line + "\"",
             "--case: '" + line + "': expected --pass forward or backward: what the trace holds");
  expect_bad(
      run + " --case \"--seq 16K --heads 32 --mask full --schedule allgather --pass forward\"",
      file + ": the trace has 0 all-gathers, a pass of the schedule 1: expected 2 for 2 passes");
}

/// Real logs whose all-reduce is faster than a ring over the cluster's links: those rows are set aside, the rest is used.
TEST_F(calibration_commands, logs_of_hierarchical_all_reduces_are_taken) {
  const std::string logs = "../shared/inputs/nccl_tests_logs/";
  NEEDS_SHARED(logs);
  for (const auto& [log, cluster, aside] : std::vector<std::array<std::string, 3>>{
           {"aws_2x_p5_allreduce", "p5", "5 of 32 rows are"},
           {"nebius_2x8_h100_allreduce", "p5", "5 of 31 rows"},
           {"gcp_a3mega_2x8_h100_allreduce", "a3-mega", "6 of 31"},
           {"gcp_a4_2x8_b200_allreduce", "p6-b200", "6 of 11"}}) {
    const auto out = folder_.file(log + ".yaml");
    const auto r = run_program("calibrate --device h100-sxm5 --nccl-tests " + logs + log + ".log@" +
                               cluster + " --out " + out);
    EXPECT_EQ(r.exit_code, 0) << r.messages;
    EXPECT_THAT(r.output, HasSubstr("\n  " + aside)) << log;
    EXPECT_THAT(r.output, HasSubstr(" faster than a ring over these links can be, ")) << log;
    EXPECT_TRUE(std::filesystem::exists(out));
  }
}

/// Gzip, a byte-order mark and line ends of other systems.
TEST_F(calibration_commands, measurements_and_runs_are_read_as_other_text_is) {
  const auto plain = results + "held_out_host_memory.json";
  const auto text = "\xef\xbb\xbf" + read_all(plain);
  const auto marked = write("held_out_host_memory.json", text);
  const std::string on = "compare tests/gpu/two-h100-host-memory.yaml ";
  const auto expected = run_program(on + plain).output;
  EXPECT_EQ(run_program(on + marked).output, expected);
  ASSERT_EQ(std::system(("gzip -k " + marked).c_str()), 0);
  EXPECT_EQ(run_program(on + marked + ".gz").output, expected);
  const auto runs = write(
      "runs.jsonl",
      "\xef\xbb\xbf"
      R"({"case":"--seq 16K --schedule ring","durations_s":{"forward":[0.001],"backward":[0.002]},)"
      R"("kernel":"attnsim-cuda","start":"in-sequence"})"
      "\r\n");
  const auto of_runs = run_program("compare tests/gpu/two-h100.yaml " + runs + " --format csv");
  EXPECT_EQ(of_runs.exit_code, 0) << of_runs.messages;
  ASSERT_EQ(std::system(("gzip -k " + runs).c_str()), 0);
  EXPECT_EQ(run_program("compare tests/gpu/two-h100.yaml " + runs + ".gz --format csv").output,
            of_runs.output);
}

TEST_F(calibration_commands, pages_hold_the_result) {
  const auto page = folder_.file("page.html");
  const auto compared = run_program("compare tests/gpu/two-h100-host-memory.yaml " + results +
                                    "held_out_host_memory.json --format json --report " + page);
  ASSERT_EQ(compared.exit_code, 0) << compared.messages;
  const auto of_compare = report::data_of(read_all(page));
  EXPECT_EQ(of_compare["result"], nlohmann::ordered_json::parse(compared.output));
  EXPECT_EQ(of_compare["charts"][1]["measured"], "measured");
  const auto fitted =
      run_program("calibrate --device h200-sxm5 --measurements " + fit + " --name mine --out " +
                  folder_.file("mine.yaml") + " --report " + page);
  ASSERT_EQ(fitted.exit_code, 0) << fitted.messages;
  const auto result = report::data_of(read_all(page))["result"];
  EXPECT_EQ(result["profile"], "mine");
  ASSERT_FALSE(result["fitted"].empty());
  EXPECT_THAT(fitted.output, HasSubstr(result["fitted"][0].get<std::string>()));
}

TEST_F(calibration_commands, bad_input_is_one_line) {
  const auto out = " --out " + folder_.file("p.yaml");
  expect_bad("calibrate --device h200-sxm5" + out,
             "nothing to fit to: expected measurements or nccl-tests logs");
  expect_bad("calibrate --device h200-sxm5 --nccl-tests x.log" + out,
             "x.log: cannot be read: No such file or directory");
  expect_bad("calibrate --device h9000 --measurements " + fit + out,
             fmt::format("--device: 'h9000': expected a file or one of: {}",
                         fmt::join(shipped_devices(), ", ")));
  const auto empty = write("empty.json", "{}");
  expect_bad("compare tests/gpu/two-h100.yaml " + empty, empty + ": schema: missing");
  const auto runs = write("runs.jsonl", "3\n");
  expect_bad("compare tests/gpu/two-h100.yaml " + runs,
             runs + ":1: '3': expected an object with a case");
  for (const std::string line :
       {R"({"case":3,"durations_s":{},"kernel":"cpu","start":"in-sequence"})",
        R"({"case":"","durations_s":3,"kernel":"cpu","start":"in-sequence"})"}) {
    expect_bad("compare tests/gpu/two-h100.yaml " + write("runs.jsonl", line + "\n"),
               runs + ":1: '" + line.substr(0, 60) +
                   "': expected a case in text and, of each pass, a list of durations_s");
  }
  expect_bad("compare tests/gpu/two-h100.yaml missing.json",
             "missing.json: cannot be read: No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("p.yaml")));
}

}  // namespace calibration_commands_test
}  // namespace attnsim
