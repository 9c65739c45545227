// The first process polls for messages and sleeps in between, as its core has a worker too. To keep that short
// against the work, the others ask for as many points at a time as took them half a second before.
//
// A message to the first process: a line with how many points are asked for, then a line "INDEX,ROW" a row. The answer:
// the points' indices; none when the work is over.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <thread>

#include "sweep/process_group.hpp"

namespace attnsim::sweep {
namespace {

constexpr std::chrono::milliseconds poll_interval(1);
constexpr std::chrono::duration<double> work_at_a_time(0.5);
constexpr int tag = 0;

bool started_by_mpi() {
  for (const auto* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

void send_points(const std::vector<std::size_t>& points, int to) {
  const std::vector<std::int64_t> indices(points.begin(), points.end());
  MPI_Send(indices.data(), static_cast<int>(indices.size()), MPI_INT64_T, to, tag, MPI_COMM_WORLD);
}

std::vector<std::int64_t> receive_points() {
  MPI_Status status;
  MPI_Probe(0, tag, MPI_COMM_WORLD, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_INT64_T, &count);
  std::vector<std::int64_t> points(static_cast<std::size_t>(count));
  MPI_Recv(points.data(), count, MPI_INT64_T, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return points;
}

std::string receive_text(const MPI_Status& status) {
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string text(static_cast<std::size_t>(size), '\0');
  MPI_Recv(text.data(), size, MPI_CHAR, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return text;
}

/// Takes in the rows; returns how many points are asked for.
std::size_t take_rows(const std::string& message, dispenser& work) {
  std::istringstream lines(message);
  std::size_t asked = 0, index = 0;
  lines >> asked;
  lines.ignore();
  for (std::string row; lines >> index && lines.ignore() && std::getline(lines, row);)
    work.give(index, row);
  return asked;
}

}  // namespace

process_group::process_group() {
  if (!started_by_mpi()) return;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &processes_);
}

process_group::~process_group() {
  if (!started_by_mpi()) return;
  if (!first() && std::uncaught_exceptions() > 0) return;  // mpirun then ends the others
  if (first() && !sent_) send("");
  MPI_Finalize();
}

void process_group::send(const std::string& text) {
  sent_ = true;
  auto copy = text;
  auto size = static_cast<std::int64_t>(text.size());
  if (processes_ == 1) return;
  MPI_Bcast(&size, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  MPI_Bcast(copy.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD);
}

std::string process_group::receive() {
  std::int64_t size = 0;
  MPI_Bcast(&size, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  std::string text(static_cast<std::size_t>(size), '\0');
  MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

void process_group::serve(dispenser& work) {
  for (int others = processes_ - 1; others > 0;) {
    int arrived = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &arrived, &status);
    if (arrived == 0) {
      std::this_thread::sleep_for(poll_interval);
      continue;
    }
    const auto points = work.take(take_rows(receive_text(status), work));
    send_points(points, status.MPI_SOURCE);
    if (points.empty()) --others;
  }
}

void process_group::help(const worker& row_of) {
  using clock = std::chrono::steady_clock;
  std::string message = "1\n";
  while (true) {
    MPI_Send(message.data(), static_cast<int>(message.size()), MPI_CHAR, 0, tag, MPI_COMM_WORLD);
    const auto points = receive_points();
    if (points.empty()) return;
    const auto start = clock::now();
    std::string rows;
    for (const auto p : points)
      rows += fmt::format("{},{}\n", p, row_of(static_cast<std::size_t>(p)));
    const std::chrono::duration<double> took = clock::now() - start;
    const auto asks = work_at_a_time / took * static_cast<double>(points.size());
    message = fmt::format("{}\n{}", static_cast<std::size_t>(std::clamp(asks, 1.0, 1e4)), rows);
  }
}

}  // namespace attnsim::sweep
