#include "tests/hosts/launch.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include "model/error.hpp"
#include "tests/hosts/what_is_left.hpp"

namespace attnsim::hosts {
namespace launch_test {

using std::chrono::seconds;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

constexpr bandwidth link{12.5e6};
constexpr double tolerance = 0.05;

class launch_test : public testing::Test {
 protected:
  void SetUp() override {
#ifndef TEST_RANK
    GTEST_SKIP() << "built without MPI";
#define TEST_RANK ""
#define SCHEDULE_RANK ""
#endif
    if (const auto lack = emulated_hosts::missing(); !lack.empty()) GTEST_SKIP() << lack;
    if (!is_installed("mpirun")) GTEST_SKIP() << "launching needs the program mpirun";
  }

  static launch_result run(const emulated_hosts& hosts, std::vector<std::string> arguments,
                           seconds time_out = seconds(60)) {
    return launch(hosts,
                  {.program = TEST_RANK, .arguments = std::move(arguments), .time_out = time_out});
  }

  static std::vector<double> rates(const launch_result& result) {
    EXPECT_EQ(result.failure(), "");
    std::istringstream lines(result.output);
    return {std::istream_iterator<double>(lines), {}};
  }
};

auto near_share(double share, const host_network& network) {
  const double rate = network.link.value() * network.payload_share() * share;
  return testing::DoubleNear(rate, tolerance * rate);
}

TEST_F(launch_test, a_star_gives_every_pair_its_link) {
  const emulated_hosts hosts(host_network::star(4, link));
  const auto measured = rates(run(hosts, {"stream", "4"}));
  EXPECT_THAT(measured, SizeIs(2));
  EXPECT_THAT(measured, Each(near_share(1, hosts.network())));
}

TEST_F(launch_test, two_flows_share_the_core_of_a_tree) {
  const emulated_hosts hosts(host_network::tree(4, 2, link, link));
  const auto measured = rates(run(hosts, {"stream", "4"}));
  EXPECT_THAT(measured, SizeIs(2));
  EXPECT_THAT(measured, Each(near_share(0.5, hosts.network())));
}

TEST_F(launch_test, a_slow_uplink_is_the_rate_across_the_core) {
  const emulated_hosts hosts(host_network::tree(2, 1, link, bandwidth(6.25e6)));
  EXPECT_THAT(rates(run(hosts, {"stream", "4"})), Each(near_share(0.5, hosts.network())));
}

TEST_F(launch_test, two_rails_double_the_rate) {
  const emulated_hosts hosts(host_network::two_rails(2, link));
  EXPECT_THAT(rates(run(hosts, {"stream", "8"})), Each(near_share(2, hosts.network())));
  const auto one =
      launch(hosts, {.program = TEST_RANK, .arguments = {"stream", "4"}, .rails = {1}});
  EXPECT_THAT(rates(one), Each(near_share(1, hosts.network())));
}

TEST_F(launch_test, counts_the_bytes_that_were_sent) {
  const emulated_hosts hosts(host_network::star(2, link));
  run(hosts, {"stream", "4", "1"});
  const auto before = hosts.bytes(0, 0);
  run(hosts, {"stream", "4", "5"});
  const auto after = hosts.bytes(0, 0);
  const double frames = 5 * 4e6 / hosts.network().payload_share();
  const auto sent = static_cast<double>(after.sent - before.sent);
  EXPECT_GE(sent, frames);
  EXPECT_LE(sent, frames * 1.01);  // MPI's headers, and the segments that are not full
  const auto received = static_cast<double>(after.received - before.received);
  EXPECT_LE(received, frames * 66 / 1514);  // an empty acknowledgement a segment at most
  EXPECT_EQ(hosts.bytes(1, 0).received, after.sent);
}

TEST_F(launch_test, places_consecutive_ranks_on_a_host) {
  const emulated_hosts hosts(host_network::star(2, link));
  const auto result = launch(
      hosts,
      {.program = "sh", .arguments = {"-c", "echo $OMPI_COMM_WORLD_RANK $(hostname)"}, .ranks = 3});
  EXPECT_EQ(result.failure(), "");
  for (const auto* line : {"0 h0\n", "1 h0\n", "2 h1\n"})
    EXPECT_THAT(result.output, HasSubstr(line));
  EXPECT_EQ(result.ranks.at(2).host, 1);
}

TEST_F(launch_test, names_the_rank_that_was_killed) {
  const emulated_hosts hosts(host_network::star(4, link));
  const auto result = run(hosts, {"kill", "2"}, seconds(20));
  EXPECT_EQ(result.failure(), "rank 2 on h2 was killed by signal 9");
  EXPECT_LT(result.duration.value(), 10);
}

TEST_F(launch_test, names_the_rank_that_exits) {
  const emulated_hosts hosts(host_network::star(4, link));
  EXPECT_EQ(run(hosts, {"exit", "1"}, seconds(20)).failure(), "rank 1 on h1 exited with code 3");
}

TEST_F(launch_test, names_the_rank_that_does_not_come_to_mpi) {
  const emulated_hosts hosts(host_network::star(4, link));
  const auto result = run(hosts, {"late", "2"}, seconds(4));
  EXPECT_TRUE(result.timed_out);
  EXPECT_THAT(result.failure(), HasSubstr(": rank 2 on h2: did not come to MPI_Init"));
  EXPECT_LT(result.duration.value(), 4 + launch_grace.count() + 1);
}

TEST_F(launch_test, names_the_rank_whose_host_cannot_be_entered) {
  const emulated_hosts hosts(host_network::star(4, link));
  output_of(hosts.namespaces().inside({"ip", "netns", "delete", "h2"}));
  const auto result = run(hosts, {"stream"}, seconds(10));
  EXPECT_THAT(result.failure(),
              HasSubstr("rank 2 on h2: never started, the host could not be entered"));
  EXPECT_LT(result.duration.value(), 10 + launch_grace.count() + 1);
}

TEST_F(launch_test, names_the_rank_whose_host_never_answers) {
  const emulated_hosts hosts(host_network::star(4, link));
  hosts.pull({2, "control"});
  const auto result = run(hosts, {"stream"}, seconds(4));
  EXPECT_THAT(result.failure(), HasSubstr("rank 2 on h2: control is down"));
  EXPECT_LT(result.duration.value(), 4 + launch_grace.count() + 1);
}

class cut_off_test : public launch_test, public testing::WithParamInterface<const char*> {};

TEST_P(cut_off_test, names_the_rank_cut_off_on_its_way) {
  const emulated_hosts hosts(host_network::star(4, link));
  auto running = std::async([&] { return run(hosts, {"forever"}, seconds(6)); });
  std::this_thread::sleep_for(seconds(2));
  hosts.pull({2, GetParam()});
  const auto result = running.get();
  EXPECT_THAT(result.failure(), HasSubstr(std::string("rank 2 on h2: ") + GetParam() + " is down"));
  EXPECT_LT(result.duration.value(), 6 + launch_grace.count() + 1);
}

INSTANTIATE_TEST_SUITE_P(interfaces, cut_off_test, testing::Values("rail0", "control"),
                         [](const auto& test) { return std::string(test.param); });

// The executor's own time-out, 5 s, comes first. Between two runs it names what the ranks share then.
TEST_F(launch_test, a_schedule_names_what_a_cut_off_host_ends) {
  const emulated_hosts hosts(host_network::star(4, link));
  auto running = std::async([&] {
    return launch(
        hosts,
        {.program = SCHEDULE_RANK, .arguments = {"repeat", "0", "5"}, .time_out = seconds(120)});
  });
  std::this_thread::sleep_for(seconds(5));
  hosts.pull({2, "rail0"});
  const auto result = running.get();
  EXPECT_THAT(
      result.errors,
      testing::ContainsRegex("rank [0-3], (operation [0-9]+ .shift.|sharing of results): nothing "
                             "from rank [0-3] within 5 s"));
  EXPECT_NE(result.failure(), "");
  EXPECT_FALSE(result.timed_out);
}

TEST_F(launch_test, leaves_nothing_behind_when_it_ran_out_of_time) {
  const auto files = leftover_files();
  const emulated_hosts hosts(host_network::star(2, link));
  setenv("LAUNCH_TEST_MARK", "time-out", 1);
  run(hosts, {"forever"}, seconds(2));
  unsetenv("LAUNCH_TEST_MARK");
  EXPECT_EQ(processes_marked("LAUNCH_TEST_MARK=time-out"), 0);
  EXPECT_EQ(leftover_files(), files);
  EXPECT_THAT(output_of(hosts.namespaces().inside({"ls", "/run", "/dev/shm"})),
              testing::Not(HasSubstr("launch-")));
}

TEST_F(launch_test, leaves_nothing_behind_when_its_owner_is_killed) {
  const auto files = leftover_files();
  const pid_t owner = fork();
  if (owner == 0) {
    setenv("LAUNCH_TEST_MARK", "owner", 1);
    const emulated_hosts hosts(host_network::star(2, link));
    run(hosts, {"forever"});
    _exit(0);
  }
  const auto ranks = [] { return processes_marked("LAUNCH_TEST_MARK=owner"); };
  EXPECT_TRUE(comes_true([&] { return ranks() >= 5; }, seconds(60)));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return ranks() == 0; }, seconds(30))) << ranks();
  EXPECT_EQ(leftover_files(), files);
}

TEST_F(launch_test, refuses_hosts_and_rails_that_are_not_there) {
  const emulated_hosts hosts(host_network::star(2, link));
  EXPECT_THROW(launch(hosts, {.program = "true", .hosts = {2}}), input_error);
  EXPECT_THROW(launch(hosts, {.program = "true", .rails = {1}}), input_error);
  EXPECT_THROW(launch(hosts, {.program = "true", .ranks = -1}), input_error);
}

}  // namespace launch_test
}  // namespace attnsim::hosts
