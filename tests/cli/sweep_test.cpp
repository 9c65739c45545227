// attnsim sweep: the file is the same however it came about.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <sstream>

#include "tests/cli/program.hpp"

namespace attnsim {
namespace sweep_test {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* small = R"(
cluster: dgx-h100
nodes: 1
heads: 32
kv-heads: [8, 32]
seq: [32K, 64K, 100]
nics.bandwidth: [200 Gb/s, 400 Gb/s]
points:
  - schedule: ring
  - {schedule: attention2d, grid: [1x8, 2x4, 3x3]}
)";

struct sweep : testing::Test {
  /// The file, or the message of a run that failed.
  std::string file_of(const std::string& spec, const std::string& flags = "",
                      const std::string& launcher = "") {
    const auto r = run(spec, flags, launcher);
    return r.exit_code == 0 ? read_all(out) : r.messages;
  }
  program_result run(const std::string& spec, const std::string& flags = "",
                     const std::string& launcher = "") {
    folder.write("sweep.yaml", spec);
    return run_program("sweep " + folder.file("sweep.yaml") + " --out " + out + " " + flags,
                       launcher);
  }
  std::string message(const std::string& spec) {
    const auto r = run(spec);
    EXPECT_EQ(r.exit_code, 2) << r.messages;
    EXPECT_FALSE(std::filesystem::exists(out));
    return r.messages;
  }
  std::string in_spec(const std::string& rest) const {
    return "attnsim: " + folder.file("sweep.yaml:") + rest;
  }

  temporary_folder folder;
  std::string out = folder.file("out.csv");
};

TEST_F(sweep, has_a_row_a_point_in_order) {
  const auto file = file_of(small);
  EXPECT_THAT(file,
              StartsWith("cluster,nodes,heads,kv-heads,seq,nics.bandwidth,schedule,grid,ranks,"));
  EXPECT_EQ(std::count(file.begin(), file.end(), '\n'), 1 + 2 * 3 * 2 * 4);
  const auto first = file.find("\ndgx-h100,1,32,8,32K,200 Gb/s,ring,,8,");
  const auto last = file.find("\ndgx-h100,1,32,32,100,400 Gb/s,attention2d,3x3,");
  EXPECT_LT(first, last);
  EXPECT_NE(last, std::string::npos);
}

TEST_F(sweep, row_is_what_predict_says) {
  const auto file = file_of("{cluster: p5, nodes: 1, seq: 64K, heads: 8, nics.bandwidth: 50 GB/s}");
  const auto p = run_program(
      "predict p5 --nodes 1 --seq 64K --heads 8 --set 'nics.bandwidth=50 GB/s' --format csv");
  const auto fields = p.output.substr(p.output.find(",8,ring,"));  // ranks and all that follows
  EXPECT_THAT(file, EndsWith(fields.substr(0, fields.size() - 1) + ",\n"));
}

TEST_F(sweep, row_is_what_step_says) {
  const auto file = file_of(
      "{scope: step, cluster: p5, nodes: 1, model: llama3-8b, seq: 8K, shard: parameters, tp: [1, "
      "3], "
      "recompute: [none, full], micro-batch: [1, 64]}");
  EXPECT_THAT(file,
              StartsWith("scope,cluster,nodes,model,seq,shard,tp,recompute,micro-batch,task,"));
  const auto p = run_program(
      "step p5 --nodes 1 --model llama3-8b --seq 8K --shard parameters --recompute full --format "
      "csv");
  const auto after_seq = p.output.find(",ring,1,1,1,8192,") + 17;
  const auto fields = p.output.substr(after_seq, p.output.size() - after_seq - 1);
  EXPECT_THAT(file,
              HasSubstr("\nstep,p5,1,llama3-8b,8K,parameters,1,full,1,train,bf16,8,1,1,1,1,8,1,"
                        "ring,1,1,1," +
                        fields + ",\n"));
  EXPECT_THAT(file, HasSubstr(",false,\"needs "));
  EXPECT_THAT(file, HasSubstr("\nstep,p5,1,llama3-8b,8K,parameters,3,none,1,"));
  EXPECT_THAT(file, HasSubstr("tp: '3': "));
}

TEST_F(sweep, empty_values_are_not_given) {
  const auto file = file_of("{cluster: dgx-h100, nodes: 1, seq: 64K, grid: ['', 8x1]}", "--quiet");
  EXPECT_THAT(file, HasSubstr("\ndgx-h100,1,64K,,8,ring,8,1,"));
  EXPECT_THAT(file, HasSubstr("\ndgx-h100,1,64K,8x1,8,ring,8,1,"));
}

TEST_F(sweep, takes_hosts) {
  const auto file = file_of(
      "{cluster: dgx-h100, nodes: 1, seq: 4K, pass: forward, host: ['', pytorch], points: "
      "[{schedule: ring}]}");
  EXPECT_THAT(file, HasSubstr("pytorch,ring,"));
  EXPECT_THAT(file, HasSubstr(",host,pytorch,1.0,"));
  EXPECT_EQ(file.find(",host,pytorch,"), file.rfind(",host,pytorch,")) << "of the second alone";
}

TEST_F(sweep, infeasible_points_say_why) {
  const auto file = file_of(small);
  EXPECT_THAT(file, HasSubstr("false,\"grid: '3x3': has 9 ranks"));
  EXPECT_THAT(file, HasSubstr("false,\"seq: '100': not a multiple of 8"));
  const auto memory = file_of("{cluster: dgx-h100, nodes: 1, seq: 64M, heads: 64, by: analytic}");
  EXPECT_THAT(memory, HasSubstr(",false,needs "));
}

TEST_F(sweep, is_the_same_with_any_number_of_jobs) {
  const auto one = file_of(small, "--jobs 1");
  EXPECT_EQ(file_of(small, "--jobs 3"), one);
}

TEST_F(sweep, is_the_same_under_mpi) {
#ifdef ATTNSIM_MPIRUN
  const std::string mpirun =
      ATTNSIM_MPIRUN " --allow-run-as-root --oversubscribe --bind-to none -np 3";
  const auto one = file_of(small);
  EXPECT_EQ(file_of(small, "", mpirun), one);
  const auto bad = run("{cluster: dgx-h100, seq: x}", "", mpirun);
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.messages, StartsWith(in_spec("1: seq: 'x': expected a whole number")));
  EXPECT_EQ(bad.messages.find("attnsim:", 1), std::string::npos) << "one rank says so";
#else
  GTEST_SKIP() << "built without MPI";
#endif
}

TEST_F(sweep, is_the_same_after_ten_kills) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  const auto whole = file_of(small);
  const std::chrono::duration<double> took = clock::now() - start;
  std::filesystem::remove(out);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(0.2, 1);
  for (int kills = 0, finished = 0; kills < 10 && finished < 20;) {
    const auto r = run(small, "--resume",
                       "timeout -s KILL " + std::to_string(share(random) * took.count() / 2));
    if (r.exit_code != 0) {
      ++kills;
      continue;
    }
    ++finished;
    EXPECT_EQ(read_all(out), whole);
    std::filesystem::remove(out);
  }
  EXPECT_EQ(file_of(small, "--resume"), whole);
  EXPECT_FALSE(std::filesystem::exists(out + ".rows"));
}

TEST_F(sweep, is_the_same_with_others_that_are_killed) {
  const auto start = std::chrono::steady_clock::now();
  const auto whole = file_of(small);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::filesystem::remove(out);
  const auto command = std::string(ATTNSIM_PROGRAM) + " sweep " + folder.file("sweep.yaml") +
                       " --out " + out + " --share --jobs 1 --quiet";
  std::mt19937 random(11);
  std::uniform_real_distribution<double> share(0.2, 1);
  int kills = 0, finished = 0;
  for (; kills < 15 && finished < 30;) {
    std::string three;  // at once, each killed at a time of its own unless it is done before
    for (int process = 0; process < 3; ++process) {
      three += "(timeout -s KILL " + std::to_string(share(random) * took.count()) + " " + command +
               "; echo $? >>" + folder.file("codes") + ") 2>/dev/null & ";
    }
    std::filesystem::remove(folder.file("codes"));
    ASSERT_EQ(std::system((three + "wait").c_str()), 0);
    std::istringstream codes(read_all(folder.file("codes")));
    bool done = false;
    for (int code = 0; codes >> code;) {
      ASSERT_TRUE(code == 0 || code == 137) << code;
      kills += code == 137;
      done = done || code == 0;
    }
    if (!done) continue;
    ++finished;
    ASSERT_EQ(read_all(out), whole);
    std::filesystem::remove(out);
  }
  EXPECT_GE(kills, 15);
  EXPECT_EQ(file_of(small, "--share"), whole);
  EXPECT_FALSE(std::filesystem::exists(out + ".parts"));
}

TEST_F(sweep, shares_with_those_of_the_same_specification) {
  folder.write("out.csv", file_of(small));
  EXPECT_THAT(file_of("{cluster: dgx-h100, seq: 64K}", "--share"),
              HasSubstr("out.csv': expected rows of this sweep, or no file"));
}

TEST_F(sweep, resumes_only_its_own_rows) {
  folder.write("out.csv", file_of(small));
  EXPECT_THAT(file_of("{cluster: dgx-h100, seq: 64K}", "--resume"),
              HasSubstr("expected rows of this sweep; without --resume it begins anew"));
}

TEST_F(sweep, names_the_bad_value) {
  EXPECT_EQ(
      message("cluster: dgx-h100\nseq: [64K, 10O]\n"),
      in_spec("2: seq[1]: '10O': expected a whole number of at least 1, such as 8, 128K or 1M\n"));
  EXPECT_EQ(message("cluster: dgx-h100\nseq: 64K\nnics.bandwidth: [400]\n"),
            in_spec("3: nics.bandwidth[0]: '400': expected a bandwidth with its unit, such as "
                    "'400 Gb/s' or '50 GB/s'\n"));
  EXPECT_EQ(message("cluster: dgx-h100\nseq: 64K\npad: some\n"),
            in_spec("3: pad: 'some': expected true or false\n"));
  EXPECT_THAT(message("cluster: dgx-h101\nseq: 64K\n"),
              StartsWith(in_spec("1: cluster: 'dgx-h101': expected a file or one of: ")));
  EXPECT_THAT(message("cluster: dgx-h100\nseq: 64K\npoints:\n - kernel: fa9\n"),
              StartsWith(in_spec("4: points[0].kernel: 'fa9': expected one of: ")));
  EXPECT_THAT(message("cluster: dgx-h100\nseq: 64K\nhedas: 32\n"),
              StartsWith(in_spec("3: hedas: unknown key; expected a field of the question or a key "
                                 "of the cluster file; did you mean heads?\n")));
  EXPECT_THAT(message("cluster: dgx-h100\n"), EndsWith("sweep.yaml: seq: is required\n"));
}

TEST_F(sweep, a_value_that_fits_some_points_is_good) {
  EXPECT_THAT(
      file_of("{cluster: dgx-h100, nodes: 1, seq: 64K, mask: [full, causal], window: [4096]}"),
      HasSubstr("expected a causal mask with a sliding window"));
}

TEST(sweep_out, is_csv) {
  const auto r = run_program("sweep s.yaml --out s.parquet");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(
      r.messages,
      "attnsim: --out: 's.parquet': expected a .csv file; Parquet is not supported, as Debian "
      "12 has no Apache Arrow\n");
}

}  // namespace sweep_test
}  // namespace attnsim
