// attnsim-link-probe: two ranks; prints lines "one-way|both-ways BYTES SECONDS" for one small message,
// which shows the latency, and large ones, which show the rate.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace {

const MPI_Comm world = MPI_COMM_WORLD;

/// There and back: twice the time of one way.
void ping_pong(std::vector<char>& data, int rank) {
  const int size = static_cast<int>(data.size());
  if (rank == 0) MPI_Send(data.data(), size, MPI_CHAR, 1, 0, world);
  MPI_Recv(data.data(), size, MPI_CHAR, 1 - rank, 0, world, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(data.data(), size, MPI_CHAR, 0, 0, world);
}

void exchange(std::vector<char>& data, int rank) {
  static std::vector<char> received;
  received.resize(data.size());
  const int size = static_cast<int>(data.size());
  MPI_Sendrecv(data.data(), size, MPI_CHAR, 1 - rank, 0, received.data(), size, MPI_CHAR, 1 - rank,
               0, world, MPI_STATUS_IGNORE);
}

/// The lower quartile, as disturbances only ever add time; of the slower rank.
double quartile_time(const std::function<void()>& operation, int repeats) {
  std::vector<double> times;
  operation();
  for (int i = 0; i < repeats; ++i) {
    MPI_Barrier(world);
    const double begin = MPI_Wtime();
    operation();
    double time = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, world);
    times.push_back(time);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 4, times.end());
  return times[static_cast<std::size_t>(repeats / 4)];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  if (ranks != 2) {
    if (rank == 0) fmt::print(stderr, "attnsim-link-probe: {} ranks: expected 2\n", ranks);
    MPI_Finalize();
    return 2;
  }
  for (const auto& [size, repeats] : {std::pair{8, 201}, {1 << 20, 5}, {3 << 20, 3}}) {
    std::vector<char> data(static_cast<std::size_t>(size));
    const double one_way = quartile_time([&] { ping_pong(data, rank); }, repeats) / 2;
    const double both_ways = quartile_time([&] { exchange(data, rank); }, repeats);
    if (rank == 0)
      fmt::print("one-way {0} {1:.9f}\nboth-ways {0} {2:.9f}\n", size, one_way, both_ways);
  }
  MPI_Finalize();
}
