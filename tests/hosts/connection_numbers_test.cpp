#include <gmock/gmock.h>

#include "tests/hosts/run_program.hpp"

namespace attnsim::hosts {
namespace connection_numbers_test {

/// DSCP is the upper six bits of the field that IP_TOS sets.
TEST(connection_numbers, go_up_with_each_connection_to_an_address) {
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
print(*(number(connected("127.0.0.1")) for _ in range(63)))
)py"});
  std::string expected = "0.0 1.0 0.0\n";
  for (int i = 2; i <= 64; ++i) expected += std::to_string(i % 64) + ".0" + (i < 64 ? " " : "\n");
  EXPECT_EQ(printed, expected);
}

}  // namespace connection_numbers_test
}  // namespace attnsim::hosts
