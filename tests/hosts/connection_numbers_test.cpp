#include <gmock/gmock.h>

#include "tests/hosts/run_program.hpp"

namespace attnsim::hosts {
namespace connection_numbers_test {

/// DSCP is the upper six bits of the field that IP_TOS sets.
TEST(connection_numbers, are_the_least_that_are_free_and_go_with_each_address) {
  const auto printed = output_of({"env", "LD_PRELOAD=" CONNECTION_NUMBERS, "python3", "-c", R"py(
import socket
servers = {address: socket.create_server((address, 0)) for address in ("127.0.0.1", "127.0.0.2")}
def connected(address):
    return socket.create_connection(servers[address].getsockname())
def number(connection):
    return connection.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) / 4
first, second = connected("127.0.0.1"), connected("127.0.0.1")
elsewhere = connected("127.0.0.2")
print(number(first), number(second), number(elsewhere))
first.close()
third, fourth = connected("127.0.0.1"), connected("127.0.0.1")
print(number(third), number(fourth))
many = [connected("127.0.0.1") for _ in range(63)]
print(number(many[-3]), number(many[-1]))
)py"});
  EXPECT_EQ(printed, "0.0 1.0 0.0\n0.0 2.0\n63.0 63.0\n");
}

}  // namespace connection_numbers_test
}  // namespace attnsim::hosts
