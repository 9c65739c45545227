#include "sim/connection.hpp"

#include <gtest/gtest.h>

namespace attnsim {
namespace connection_test {

constexpr picoseconds latency = 7;

TEST(connection, a_message_with_room_goes_before_its_receiver_comes) {
  connection c(100);
  EXPECT_FALSE(c.begin());
  c.send(60, latency);
  const auto part = c.begin();
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes, 60);
  EXPECT_EQ(part->latency, latency);
  EXPECT_FALSE(c.begin());
  EXPECT_TRUE(c.end());
  EXPECT_FALSE(c.is_awaited());
  EXPECT_TRUE(c.receive(60));
}

TEST(connection, a_receiver_that_comes_first_waits) {
  connection c(100);
  EXPECT_FALSE(c.receive(500));
  EXPECT_FALSE(c.begin());
  c.send(500, latency);
  EXPECT_EQ(c.begin()->bytes, 500);
  EXPECT_TRUE(c.end());
  EXPECT_TRUE(c.is_awaited());
}

// Of 60 and 60 bytes 100 have room; the rest goes when the receiver has come to the first.
TEST(connection, a_message_pauses_where_there_is_no_more_room) {
  connection c(100);
  c.send(60, latency);
  c.begin();
  c.end();
  c.send(60, latency);
  EXPECT_EQ(c.begin()->bytes, 40);
  EXPECT_FALSE(c.end());
  EXPECT_FALSE(c.begin());
  EXPECT_TRUE(c.receive(60));
  const auto rest = c.begin();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->bytes, 20);
  EXPECT_EQ(rest->latency, 0);
  EXPECT_TRUE(c.end());
  EXPECT_TRUE(c.receive(60));
}

TEST(connection, a_receiver_that_comes_while_the_first_part_moves_waits_for_all) {
  connection c(100);
  c.send(300, latency);
  EXPECT_EQ(c.begin()->bytes, 100);
  EXPECT_FALSE(c.receive(300));
  EXPECT_FALSE(c.end());
  EXPECT_EQ(c.begin()->bytes, 200);
  EXPECT_TRUE(c.end());
  EXPECT_TRUE(c.is_awaited());
}

TEST(connection, messages_of_no_bytes_pass) {
  connection c(100);
  c.send(0, latency);
  EXPECT_EQ(c.begin()->bytes, 0);
  EXPECT_TRUE(c.end());
  EXPECT_TRUE(c.receive(0));
}

}  // namespace connection_test
}  // namespace attnsim
