#include "validate/transport.hpp"

#include <gmock/gmock.h>

#include <chrono>

#include "kernels/cpu/backend.hpp"
#include "model/error.hpp"
#include "tests/expect_error.hpp"
#include "validate/transports/inprocess.hpp"
#include "validate/transports/mpi.hpp"
#include "validate/transports/nccl.hpp"

namespace attnsim::validate {
namespace transport_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::duration<double> time_out{5};

/// What a channel over all ranks leaves on each, when rank r starts from r + 1 (and slot i from
/// 10 * i more).
template <typename Operation>
std::vector<std::vector<float>> run(int ranks, int slots_sent, int slots_received,
                                    Operation operation) {
  std::vector<std::vector<float>> received(static_cast<std::size_t>(ranks));
  run_in_process(ranks, time_out, [&](transport& t) {
    const auto device = kernels::cpu::make_backend();
    const auto stream = device->create_stream();
    std::vector<int> group;
    for (int r = 0; r < ranks; ++r) group.push_back(r);
    std::vector<float> sent;
    for (int i = 0; i < slots_sent; ++i) sent.push_back(static_cast<float>(t.rank() + 1 + 10 * i));
    auto& own = received[static_cast<std::size_t>(t.rank())];
    own.resize(static_cast<std::size_t>(slots_received));
    const auto all = t.open(*device, stream, group);
    const payload p{sent.data(), own.data(), sizeof(float), data_type::fp32};
    operation(*all, t.rank(), std::span(&p, 1));
    device->synchronize(stream);
  });
  return received;
}

TEST(channel, sends_and_receives) {
  EXPECT_THAT(run(3, 1, 1,
                  [](channel& c, int rank, auto p) {
                    c.send_receive("shift", (rank + 1) % 3, (rank + 2) % 3, p);
                  }),
              ElementsAre(ElementsAre(3), ElementsAre(1), ElementsAre(2)));
}

TEST(channel, gathers_in_order_of_place) {
  EXPECT_THAT(run(3, 1, 3, [](channel& c, int, auto p) { c.all_gather("gather", p); }),
              ElementsAre(ElementsAre(1, 2, 3), ElementsAre(1, 2, 3), ElementsAre(1, 2, 3)));
}

TEST(channel, sums_the_slot_of_each_member) {
  EXPECT_THAT(run(3, 3, 1, [](channel& c, int, auto p) { c.reduce_scatter("reduce", p); }),
              ElementsAre(ElementsAre(6), ElementsAre(36), ElementsAre(66)));
}

TEST(channel, exchanges_slots_among_all) {
  EXPECT_THAT(run(3, 3, 3, [](channel& c, int, auto p) { c.all_to_all("exchange", p); }),
              ElementsAre(ElementsAre(1, 2, 3), ElementsAre(11, 12, 13), ElementsAre(21, 22, 23)));
}

TEST(channel, leaves_the_sum_with_all) {
  EXPECT_THAT(run(3, 1, 1, [](channel& c, int, auto p) { c.all_reduce("reduce", p); }),
              ElementsAre(ElementsAre(6), ElementsAre(6), ElementsAre(6)));
}

TEST(transport, shares_blobs_of_any_size) {
  run_in_process(5, time_out, [](transport& t) {
    const auto all = t.share(blob(static_cast<std::size_t>(t.rank()), std::byte{7}));
    ASSERT_EQ(all.size(), 5u);
    for (std::size_t r = 0; r < 5; ++r) EXPECT_EQ(all[r], blob(r, std::byte{7}));
    for (int round = 0; round < 100; ++round) {
      const auto own = static_cast<std::byte>(round + t.rank());
      for (std::size_t r = 0; const auto& one : t.share({own}))
        EXPECT_EQ(one, blob{static_cast<std::byte>(std::size_t(round) + r++)});
    }
  });
}

TEST(transport, threads_have_one_clock) {
  run_in_process(3, time_out, [](transport& t) { EXPECT_EQ(t.clock_offset(), 0); });
}

std::string failure(const std::function<void(transport&)>& body, double seconds) {
  try {
    run_in_process(4, std::chrono::duration<double>(seconds), body);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(transport, names_the_rank_that_does_not_come_and_the_operation) {
  const auto begin = std::chrono::steady_clock::now();
  const auto error = failure(
      [](transport& t) {
        if (t.rank() == 2) return;
        const auto device = kernels::cpu::make_backend();
        const auto stream = device->create_stream();
        float sent = 1, received = 0;
        const payload p{&sent, &received, sizeof(float), data_type::fp32};
        const auto ring = t.open(*device, stream, {0, 1, 2, 3});
        ring->send_receive("operation 0 (shift)", (t.rank() + 1) % 4, (t.rank() + 3) % 4, {&p, 1});
        device->synchronize(stream);
      },
      3);
  EXPECT_THAT(error, HasSubstr("operation 0 (shift): nothing from rank 2 within 3 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(transport, names_the_rank_that_does_not_share) {
  const auto error = failure(
      [](transport& t) {
        t.barrier();
        if (t.rank() != 3) t.share(blob(4));
      },
      0.5);
  EXPECT_THAT(error, HasSubstr("sharing of results: nothing from rank 3 within 0.5 s"));
}

TEST(transport, ends_all_ranks_with_the_first_failure) {
  EXPECT_EQ(failure(
                [](transport& t) {
                  if (t.rank() == 1) throw std::runtime_error("rank 1 is out of memory");
                  t.barrier();
                },
                30),
            "rank 1 is out of memory");
}

TEST(transports, that_are_not_built_say_how_to_get_them) {
  if (has_nccl() && has_mpi()) GTEST_SKIP() << "all are built";
  if (!has_nccl()) {
    EXPECT_ERROR(join_nccl({}, {}), input_error,
                 "transport: 'nccl': not in this build: install CUDA and NCCL and configure with "
                 "-DATTNSIM_GPU=ON");
  }
  if (!has_mpi()) {
    EXPECT_ERROR(join_mpi({}), input_error,
                 "transport: 'mpi': not in this build: install MPI (libopenmpi-dev) and configure "
                 "with -DATTNSIM_MPI=ON");
  }
}

}  // namespace transport_test
}  // namespace attnsim::validate
