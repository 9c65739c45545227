#include "tests/hosts/launch_result.hpp"

#include <gtest/gtest.h>

namespace attnsim::hosts {
namespace launch_result_test {

using state = rank_end::state;
using std::chrono::milliseconds;

/// Two ranks a host.
launch_result failed(std::vector<rank_end> ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<int>(i);
    ranks[i].host = static_cast<int>(i) / 2;
  }
  return {.status = 1, .ranks = std::move(ranks)};
}

rank_end exited(int status, int after_ms) {
  return {.how = state::exited,
          .status = status,
          .when = std::filesystem::file_time_type(milliseconds(after_ms))};
}

TEST(launch_result, has_no_failure_where_mpirun_saw_none) {
  EXPECT_EQ(launch_result{}.failure(), "");
}

TEST(launch_result, blames_the_rank_that_failed_first) {
  const auto result =
      failed({exited(15, 30), exited(0, 5), exited(137, 10), {.how = state::running}});
  EXPECT_EQ(result.failure(), "rank 2 on h1 was killed by signal 9");
  EXPECT_EQ(failed({exited(0, 1), exited(3, 2)}).failure(), "rank 1 on h0 exited with code 3");
}

TEST(launch_result, blames_pulled_cables_before_ranks_that_wait) {
  auto result = failed({{.how = state::running}, exited(0, 1), {.how = state::running}});
  result.pulled_cables = {{1, "rail0"}, {3, "rail0"}};
  EXPECT_EQ(result.failure(), "rank 2 on h1: rail0 is down");
}

TEST(launch_result, blames_the_host_that_was_lost_first) {
  auto result = failed({{}, {}, {}});
  EXPECT_EQ(result.failure(), "rank 0 on h0, rank 1 on h0, rank 2 on h1: never started");
  result.lost_hosts = {1, 0};
  EXPECT_EQ(result.failure(), "rank 2 on h1: never started, the host could not be entered");
}

TEST(launch_result, blames_ranks_that_did_not_come_to_mpi_before_ranks_that_wait) {
  auto result = failed({{.how = state::running}, {.how = state::starting}});
  EXPECT_EQ(result.failure(), "rank 1 on h0: did not come to MPI_Init");
  result.ranks[1].how = state::running;
  EXPECT_EQ(result.failure(), "rank 0 on h0, rank 1 on h0: still running");
}

TEST(launch_result, says_when_the_time_ran_out) {
  auto result = failed({{.how = state::running}});
  result.timed_out = true;
  result.duration = seconds(20);
  EXPECT_EQ(result.failure(), "time-out after 20.00 s: rank 0 on h0: still running");
}

TEST(mark_starting, reads_the_state_that_mpirun_reports) {
  std::vector<rank_end> ranks(3, {.how = state::running});
  mark_starting(ranks,
                "DATA FOR JOB: [27903,0]\n\tProcs:\n"
                "\t\tRank: 0\tNode: vm\tPID: 1\tState: RUNNING\tExitCode 0\n\n"
                "DATA FOR JOB: [27903,1]\n\tProcs:\n"
                "\t\tRank: 0\tNode: h0\tPID: 9\tState: SYNC REGISTERED\tExitCode 0\n"
                "\t\tRank: 1\tNode: h1\tPID: 9\tState: RUNNING\tExitCode 0\n");
  EXPECT_EQ(ranks[0].how, state::running);
  EXPECT_EQ(ranks[1].how, state::starting);
  EXPECT_EQ(ranks[2].how, state::running);
}

}  // namespace launch_result_test
}  // namespace attnsim::hosts
