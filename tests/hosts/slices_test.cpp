#include "tests/hosts/slices.hpp"

#include <gmock/gmock.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::hosts {
namespace slices_test {

using testing::UnorderedElementsAre;

TEST(slice_request, shares_a_card_among_its_ranks) {
  const auto sixteen = host_network::star(16, bandwidth(25e6));
  check({.gpus = 2, .share = 12}, sixteen, 16);
  EXPECT_ERROR(check({.gpus = 2, .share = 13}, sixteen, 16), input_error, "share: '13': 1 to 12");
  EXPECT_ERROR(check({.gpus = 1, .share = 12}, sixteen, 16), input_error, "share: '12': 1 to 6");
  EXPECT_ERROR(check({.gpus = 17}, sixteen, 16), input_error, "gpus: '17': 1 to 16");
  EXPECT_ERROR(check({.channels = 0}, host_network::star(2, bandwidth(25e6)), 16), input_error,
               "channels: '0': 1 to 32");
}

TEST(slice_request, has_links_that_the_cores_carry) {
  check({.share = 6}, host_network::star(16, bandwidth(125e6)), 16);
  EXPECT_ERROR(check({.share = 6}, host_network::star(16, bandwidth(250e6)), 16), input_error,
               "link: '250.0 MB/s': at most 125.0 MB/s a host, which 16 cores carry for 16 hosts");
  EXPECT_ERROR(check({.share = 6}, host_network::two_rails(16, bandwidth(125e6)), 16), input_error,
               "link: '250.0 MB/s': at most 125.0 MB/s a host, which 16 cores carry for 16 hosts");
  EXPECT_ERROR(
      check({.share = 6},
            {.hosts = 4, .link = bandwidth(25e6), .other_links = {{3, bandwidth(625e6)}}}, 16),
      input_error,
      "link: '625.0 MB/s': at most 500.0 MB/s a host, which 16 cores carry for 4 hosts");
}

/// A stand-in for NVIDIA's program on PATH, where there is no GPU: what ranks get does not depend on it.
class slices : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lack = emulated_hosts::missing(); !lack.empty()) GTEST_SKIP() << lack;
    const auto program = folder_.write("nvidia-cuda-mps-control", "#!/bin/sh\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    path_ = getenv("PATH");
    setenv("PATH", (folder_.file("") + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    if (!path_.empty()) setenv("PATH", path_.c_str(), 1);
  }

 private:
  temporary_folder folder_;
  std::string path_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(slices, put_a_rank_on_each_host_and_tell_nccl_apart) {
  const emulated_hosts hosts(host_network::two_rails(3, bandwidth(12.5e6)));
  const auto result = run_on_slices(
      hosts,
      {.program = "sh",
       .arguments = {"-c",
                     "echo $RANK of $WORLD_SIZE $NCCL_HOSTID $NCCL_SOCKET_IFNAME $MASTER_ADDR "
                     "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $NCCL_MAX_NCHANNELS "
                     "$(ip -o -4 address show rail1 | awk '{print $4}')"},
       .gpus = 2,
       .share = 30});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(lines_of(result.output),
              UnorderedElementsAre("0 of 3 h0 rail 10.64.0.1 30 2 10.66.0.1/16",
                                   "1 of 3 h1 rail 10.64.0.1 30 2 10.66.0.2/16",
                                   "2 of 3 h2 rail 10.64.0.1 30 2 10.66.0.3/16"));
}

TEST_F(slices, send_a_message_by_one_connection_unless_each_rail_has_a_part) {
  const auto settings = [](const host_network& network) {
    const auto result = run_on_slices(
        emulated_hosts(network),
        {.program = "sh",
         .arguments = {"-c",
                       "echo ${NCCL_NCHANNELS_PER_NET_PEER-none} ${NCCL_P2P_NET_CHUNKSIZE-none}"}});
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  };
  EXPECT_EQ(settings(host_network::star(1, bandwidth(12.5e6))), "1 524288\n");
  EXPECT_EQ(settings(host_network::two_rails(1, bandwidth(12.5e6))), "none none\n");
}

TEST_F(slices, number_the_connections_of_ranks) {
  const emulated_hosts hosts(host_network::star(2, bandwidth(12.5e6)));
  const auto result = run_on_slices(hosts, {.program = "sh",
                                            .arguments = {"-c", "echo $LD_PRELOAD"},
                                            .connection_numbers = CONNECTION_NUMBERS});
  EXPECT_EQ(result.output, CONNECTION_NUMBERS "\n" CONNECTION_NUMBERS "\n") << result.errors;
}

TEST_F(slices, take_short_turns_on_cores) {
  utsname kernel{};
  uname(&kernel);
  int major = 0, minor = 0;
  std::sscanf(kernel.release, "%d.%d", &major, &minor);
  if (std::pair(major, minor) < std::pair(6, 12) || !std::ifstream("/proc/self/sched"))
    GTEST_SKIP() << "Linux " << kernel.release << " does not choose or show turns";
  const emulated_hosts hosts(host_network::star(2, bandwidth(25e6)));
  const auto result = run_on_slices(
      hosts, {.program = "sed", .arguments = {"-n", "s/^se.slice *: *//p", "/proc/self/sched"}});
  EXPECT_EQ(result.output, "100000\n100000\n") << result.errors;
}

TEST_F(slices, end_with_the_first_rank_that_fails) {
  const emulated_hosts hosts(host_network::star(2, bandwidth(25e6)));
  const auto result = run_on_slices(
      hosts, {.program = "sh", .arguments = {"-c", "[ $RANK = 0 ] && exit 7; sleep 100"}});
  EXPECT_EQ(result.status, 7);
}

TEST_F(slices, are_ended_by_the_time_out) {
  const emulated_hosts hosts(host_network::star(2, bandwidth(25e6)));
  const auto result = run_on_slices(
      hosts, {.program = "sleep", .arguments = {"100"}, .time_out = std::chrono::seconds(1)});
  EXPECT_EQ(result.status, 137);
}

}  // namespace slices_test
}  // namespace attnsim::hosts
