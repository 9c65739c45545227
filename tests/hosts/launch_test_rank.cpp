// The MPI program of launch_test. The lower half of the ranks sends, the upper half receives.
//
//   stream MEGABYTES [REPEATS]   rank i to rank i + ranks/2, all at once; every sender prints the
//                                median of its bytes/s
//   forever                      as stream, without end
//   kill RANK                    that rank ends by SIGKILL while the others wait for it
//   exit RANK                    that rank ends with code 3 while the others wait for it
//   late RANK                    that rank pauses instead of coming to MPI_Init
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

/// Bytes per second until the receiver has it all.
double stream(int rank, int ranks, std::vector<char>& data) {
  const int size = static_cast<int>(data.size()), peer = (rank + ranks / 2) % ranks;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (rank < ranks / 2) {
    MPI_Send(data.data(), size, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data.data(), size, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
  }
  return size / (MPI_Wtime() - begin);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argv[1];
  const int number = argc > 2 ? std::atoi(argv[2]) : 1, repeats = argc > 3 ? std::atoi(argv[3]) : 5;
  if (what == "late" && std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")) == number) pause();
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (what == "kill" && rank == number) raise(SIGKILL);
  if (what == "exit" && rank == number) std::_Exit(3);
  if (what == "kill" || what == "exit") MPI_Barrier(MPI_COMM_WORLD);

  std::vector<char> data(static_cast<std::size_t>(number) * 1000000);
  std::vector<double> rates;
  while (what == "forever" || static_cast<int>(rates.size()) < repeats)
    rates.push_back(stream(rank, ranks, data));
  std::nth_element(rates.begin(), rates.begin() + repeats / 2, rates.end());
  if (rank < ranks / 2) std::printf("%.0f\n", rates[static_cast<std::size_t>(repeats / 2)]);
  MPI_Finalize();
}
