#include "tests/hosts/hosts.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include <filesystem>

#include "model/error.hpp"

namespace attnsim::hosts {
namespace hosts_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr bandwidth link{25e6};

class hosts_test : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lack = emulated_hosts::missing(); !lack.empty()) GTEST_SKIP() << lack;
  }
};

void expect_refusal(const host_network& network, const std::string& message) {
  try {
    check(network);
    FAIL() << message;
  } catch (const input_error& error) {
    EXPECT_EQ(error.what(), message);
  }
}

TEST(host_network, refuses_what_cannot_be_built) {
  expect_refusal(host_network::star(0, link), "hosts: '0': 1 to 256");
  expect_refusal(host_network::tree(4, 5, link, link), "hosts per leaf: '5': 0 to 4");
  expect_refusal({.rails = 9}, "rails: '9': 1 to 8");
  expect_refusal({.mtu = 9001}, "mtu: '9001': 576 to 9000");
  expect_refusal({.queues = 1025}, "queues: '1025': 1 to 1024");
  expect_refusal({.queues = 12}, "queues: '12': a power of two");
  expect_refusal({.other_links = {{2, link}}}, "host of another link: '2': 0 to 1");
  expect_refusal({.other_links = {{1, bandwidth(0)}}}, "link: '0 B/s': 1 Mb/s to 10 Gb/s");
  expect_refusal(host_network::star(2, bandwidth(0)), "link: '0 B/s': 1 Mb/s to 10 Gb/s");
}

TEST(host_network, leaves_headers_out_of_the_payload) {
  EXPECT_DOUBLE_EQ(host_network{}.payload_share(), 1448.0 / 1514);
}

TEST_F(hosts_test, shape_both_ends_of_every_cable) {
  const emulated_hosts hosts(host_network::tree(4, 2, link, bandwidth(12.5e6)));
  EXPECT_THAT(hosts.run_on(3, {"tc", "class", "show", "dev", "rail0"}).output,
              HasSubstr("rate 200Mbit ceil 200Mbit"));
  const auto fabric = output_of(hosts.namespaces().inside(
      {"sh", "-c", "for i in h3 up1 down1; do tc class show dev $i-rail0; done"}));
  EXPECT_THAT(fabric, HasSubstr("rate 200Mbit ceil 200Mbit"));
  EXPECT_THAT(fabric, HasSubstr("rate 100Mbit ceil 100Mbit"));
  EXPECT_THAT(hosts.run_on(0, {"ethtool", "-k", "rail0"}).output,
              testing::AllOf(HasSubstr("tcp-segmentation-offload: off"),
                             HasSubstr("generic-segmentation-offload: off"),
                             HasSubstr("generic-receive-offload: off")));
}

/// Zero, in hexadecimal digits, would be: whichever core comes by.
TEST_F(hosts_test, receive_on_chosen_cores) {
  const emulated_hosts hosts(host_network::tree(2, 1, link, link));
  const auto cores = output_of(hosts.namespaces().inside({"sh", "-c", R"sh(
cores() { ip netns exec $1 sh -c "cd /sys/class/net/$2/queues/rx-0 && if [ -w rps_cpus ]; then cat rps_cpus; fi"; }
cores h1 rail0; cores fabric h1-rail0; cores fabric up1-rail0; cores fabric down1-rail0)sh"}));
  if (cores.empty()) GTEST_SKIP() << "nobody may choose: no CONFIG_RPS, or /sys is read only";
  EXPECT_THAT(cores, testing::MatchesRegex("([0,]*[1-9a-f][0-9a-f]*\n){4}"));
}

/// Where a kernel without the classifier u32 cannot divide links, true.
bool links_are_whole() {
  return system(
             "unshare -n sh -c 'tc qdisc add dev lo root handle 1: htb && tc filter add dev lo "
             "parent 1: u32 match u32 0 0' 2>/dev/null") != 0;
}

/// A class for acknowledgements and one a queue, each of which may have the whole rate.
TEST_F(hosts_test, divide_links_among_queues) {
  if (links_are_whole()) GTEST_SKIP() << "the kernel has no classifier u32";
  auto network = host_network::star(2, link);
  network.queues = 4;
  const emulated_hosts hosts(network);
  const auto classes = hosts.run_on(0, {"tc", "class", "show", "dev", "rail0"}).output;
  for (const auto* name : {"1:2 ", "1:10 ", "1:11 ", "1:12 ", "1:13 "})
    EXPECT_THAT(classes, HasSubstr(std::string("class htb ") + name + "parent 1:1"));
  EXPECT_THAT(classes, HasSubstr("prio 1 rate 25Mbit ceil 200Mbit"));
  const auto filters = hosts.run_on(0, {"tc", "filter", "show", "dev", "rail0"}).output;
  EXPECT_THAT(filters, HasSubstr("link 10:"));
}

/// Host 1 is 10.65.0.2: of 32 queues, the 2 of "2" at host 0 and, by the sender, the 2 of "1" at the bridge. Each has the openings of
/// its connections (74 bytes) and their data, 66 bytes a packet more: four bytes are no acknowledgement, which go before all data.
TEST_F(hosts_test, tell_the_connections_to_a_host_apart_by_their_number) {
  if (links_are_whole()) GTEST_SKIP() << "the kernel has no classifier u32";
  auto network = host_network::star(2, link);
  network.queues = 32;
  const emulated_hosts hosts(network);
  const auto sent = output_of(hosts.namespaces().inside({"sh", "-ec", R"sh(
echo 'import socket
s = socket.create_server(("10.65.0.2", 5000))
print(flush=True)
for c in [s.accept()[0] for _ in "abc"]: c.recv(4000, socket.MSG_WAITALL)' > /run/server.py
echo 'import socket
connections = [socket.create_connection(("10.65.0.2", 5000)) for _ in "abc"]
for c, size in zip(connections, (1000, 2000, 3996)):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    c.sendall(b"x" * size)
connections[2].sendall(b"four")' > /run/client.py
ip netns exec h1 python3 /run/server.py > /run/ready &
while [ ! -s /run/ready ]; do sleep 0.01; done
ip netns exec h0 env LD_PRELOAD=$0 python3 /run/client.py
wait
bytes() { awk -v class=$1 '$1 == "class" { here = $3 == class } here && $1 == "Sent" { print class, $2 }'; }
for class in 1:14 1:15; do ip netns exec h0 tc -s class show dev rail0 | bytes $class; done
for class in 1:12 1:13; do tc -s class show dev h1-rail0 | bytes $class; done)sh",
                                                         CONNECTION_NUMBERS}));
  constexpr int even = 2 * 74 + (1000 + 66) + (3996 + 3 * 66) + (4 + 66);
  constexpr int odd = 74 + 2000 + 2 * 66;
  EXPECT_EQ(sent, fmt::format("1:14 {0}\n1:15 {1}\n1:12 {0}\n1:13 {1}\n", even, odd));
}

TEST_F(hosts_test, give_a_host_another_rate) {
  const emulated_hosts hosts({.hosts = 3, .link = link, .other_links = {{1, bandwidth(12.5e6)}}});
  for (const auto& [host, rate] :
       {std::pair{0, "rate 200Mbit"}, {1, "rate 100Mbit"}, {2, "rate 200Mbit"}}) {
    EXPECT_THAT(hosts.run_on(host, {"tc", "class", "show", "dev", "rail0"}).output,
                HasSubstr(rate));
  }
}

TEST_F(hosts_test, see_their_own_interfaces_and_nothing_of_the_machine) {
  const emulated_hosts hosts(host_network::two_rails(2, link));
  EXPECT_EQ(hosts.run_on(1, {"ls", "/sys/class/net"}).output, "control\nlo\nrail0\nrail1\n");
  EXPECT_FALSE(std::filesystem::exists("/run/netns/h0"));
}

TEST_F(hosts_test, know_which_cables_are_pulled) {
  const emulated_hosts hosts(host_network::star(2, link));
  EXPECT_THAT(hosts.pulled_cables(), ElementsAre());
  hosts.pull({1, "rail0"});
  EXPECT_THAT(hosts.pulled_cables(), ElementsAre(cable{1, "rail0"}));
  hosts.plug({1, "rail0"});
  EXPECT_THAT(hosts.pulled_cables(), ElementsAre());
}

TEST_F(hosts_test, are_silent_when_idle) {
  const emulated_hosts hosts(host_network::star(2, link));
  sleep(1);
  EXPECT_EQ(hosts.bytes(0, 0).sent, 0u);
  EXPECT_EQ(hosts.bytes(0, 0).received, 0u);
  EXPECT_THROW(hosts.bytes(0, 1), std::out_of_range);
}

TEST_F(hosts_test, scale_to_a_large_tree) {
  const emulated_hosts hosts(host_network::tree(32, 8, link, link));
  EXPECT_EQ(hosts.run_on(31, {"true"}).status, 0);
}

}  // namespace hosts_test
}  // namespace attnsim::hosts
