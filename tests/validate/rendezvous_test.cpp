#include "validate/transports/rendezvous.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::validate {
namespace rendezvous_test {

using testing::HasSubstr;

job_place place_in(const std::map<std::string, std::string>& variables) {
  return find_place([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

class star final : public tcp_transport {
 public:
  using tcp_transport::tcp_transport;
  std::string_view name() const override { return "star"; }
};

/// A port that nobody listens on, outside the range from which the system gives ports to those who connect.
int free_port() {
  static int next = 20000 + static_cast<int>(getpid() % 10000);
  while (true) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in own{.sin_family = AF_INET,
                          .sin_port = htons(static_cast<std::uint16_t>(++next)),
                          .sin_addr = {.s_addr = htonl(INADDR_ANY)}};
    const bool is_free = bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0;
    close(listener);
    if (is_free) return next;
  }
}

TEST(place, torchrun) {
  const auto p = place_in({{"RANK", "5"},
                           {"WORLD_SIZE", "16"},
                           {"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "4"},
                           {"MASTER_ADDR", "10.0.0.7"},
                           {"MASTER_PORT", "29500"}});
  EXPECT_EQ(p.rank, 5);
  EXPECT_EQ(p.ranks, 16);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.address, "10.0.0.7");
  EXPECT_EQ(p.port, 29500);
}

TEST(place, torchrun_whose_agent_holds_the_port) {
  const auto p = place_in({{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "localhost"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(p.port, 29501);
}

TEST(place, mpirun_on_one_host) {
  const auto p = place_in({{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_NAMESPACE", "847"}});
  EXPECT_EQ(p.address, "127.0.0.1");
  EXPECT_GE(p.port, 20000);
  EXPECT_LT(p.port, 32000);
}

TEST(place, srun_takes_the_first_host) {
  const auto p = place_in({{"SLURM_PROCID", "3"},
                           {"SLURM_NTASKS", "4"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_JOB_ID", "17"},
                           {"SLURM_STEP_NODELIST", "gpu[07-10]"}});
  EXPECT_EQ(p.address, "gpu07");
  EXPECT_EQ(p.local_rank, 0);
}

TEST(place, first_hosts) {
  EXPECT_EQ(first_host("a"), "a");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("n[3,5]"), "n3");
  EXPECT_EQ(first_host("n[03-05,9],m"), "n03");
}

TEST(place, mistakes) {
  EXPECT_THAT([] { place_in({}); }, testing::ThrowsMessage<input_error>(HasSubstr("mpirun, srun")));
  EXPECT_THAT(
      [] {
        place_in({{"RANK", "x"}});
      },
      testing::ThrowsMessage<input_error>("RANK: 'x': expected a number"));
  EXPECT_THAT(
      [] {
        place_in({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
      },
      testing::ThrowsMessage<input_error>("RANK: '2': expected less than WORLD_SIZE=2"));
  EXPECT_THAT(
      [] {
        place_in({{"OMPI_COMM_WORLD_RANK", "0"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
      },
      testing::ThrowsMessage<input_error>(HasSubstr("MASTER_ADDR: ''")));
}

TEST(star_of_sockets, shares_and_aligns_clocks) {
  constexpr int ranks = 5;
  const int port = free_port();
  std::vector<std::thread> threads;
  std::vector<double> offsets(ranks, 1);
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      star net({.rank = r, .ranks = ranks, .address = "127.0.0.1", .port = port},
               std::chrono::seconds(60));
      offsets[static_cast<std::size_t>(r)] = net.clock_offset();
      const auto all = net.share(blob(static_cast<std::size_t>(r) * 100000, std::byte(r)));
      for (int other = 0; other < ranks; ++other) {
        const auto& one = all[static_cast<std::size_t>(other)];
        EXPECT_EQ(one.size(), static_cast<std::size_t>(other) * 100000);
        EXPECT_TRUE(one.empty() || one.back() == std::byte(other));
      }
      net.barrier();
    });
  }
  for (auto& t : threads) t.join();
  for (const double offset : offsets) EXPECT_NEAR(offset, 0, 0.5);
}

TEST(star_of_sockets, names_who_does_not_come) {
  EXPECT_THAT(
      [] {
        star net({.rank = 0, .ranks = 3, .address = "127.0.0.1", .port = free_port()},
                 std::chrono::milliseconds(200));
      },
      testing::ThrowsMessage<transport_error>(
          "rank 0, rendezvous: nothing from rank 1, 2 within 0.2 s"));
  EXPECT_THAT(
      [] {
        star net({.rank = 1, .ranks = 3, .address = "127.0.0.1", .port = free_port()},
                 std::chrono::milliseconds(200));
      },
      testing::ThrowsMessage<transport_error>(HasSubstr("rank 1, rendezvous: no rank 0 at 127.")));
}

TEST(star_of_sockets, notices_who_leaves) {
  const int port = free_port();
  std::thread leaver([&] {
    star net({.rank = 1, .ranks = 2, .address = "127.0.0.1", .port = port},
             std::chrono::seconds(60));
  });
  star net({.rank = 0, .ranks = 2, .address = "127.0.0.1", .port = port}, std::chrono::seconds(60));
  leaver.join();
  EXPECT_THAT([&] { net.barrier(); },
              testing::ThrowsMessage<transport_error>(HasSubstr("rank 1 has ended")));
}

}  // namespace rendezvous_test
}  // namespace attnsim::validate
