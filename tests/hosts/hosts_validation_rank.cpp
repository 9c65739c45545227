// The MPI program of hosts_validation_test: one rank a host, waits as compute, real messages.
//   hosts_validation_rank CLUSTER.yaml SCHEDULE:RxC:TOKENS:PASS...
// TOKENS are those of one rank. Prints for each run, on rank 0,
//   SCHEDULE:RxC:TOKENS:PASS PREDICTED MEASURED (seconds) BYTES (sent by all ranks in all repeats)
#include <fmt/format.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>

#include "model/schedule/algorithms/schedules.hpp"
#include "validate/transports/mpi.hpp"
#include "validate/validate.hpp"

namespace attnsim::validate {
namespace {

struct run {
  std::string name;
  strategy chosen;
  attention problem;
  pass_kind pass;
};

run parse_run(const std::string& text, int ranks) {
  char schedule_name[64], pass[16];
  int rows = 0, cols = 0, tokens = 0;
  const int read = std::sscanf(text.c_str(), "%63[^:]:%dx%d:%d:%15s", schedule_name, &rows, &cols,
                               &tokens, pass);
  if (read != 5) throw std::invalid_argument(text + ": expected SCHEDULE:RxC:TOKENS:PASS");
  return {text,
          {.schedule = schedule_name, .rows = rows, .cols = cols},
          {.heads = 8, .kv_heads = 4, .head_dim = 64, .sequence = tokens * ranks},
          parse_pass(pass)};
}

double all_bytes(const validation& v, const run& r) {
  double bytes = 0;
  for (const auto& p : v.passes) {
    const workload work(p.program, r.problem, r.chosen.tokens, true);
    for (int rank = 0; rank < work.ranks(); ++rank) {
      bytes += static_cast<double>(work.bytes_sent(rank).value());
    }
  }
  return bytes;
}

void validate_all(const char* cluster_file, const std::vector<std::string>& runs) {
  constexpr int repeats = 1;
  const auto net = join_mpi(std::chrono::seconds(20));
  const auto on = read_cluster(cluster_file);
  for (const auto& text : runs) {
    const auto r = parse_run(text, net->ranks());
    const auto v = validate({.on = on,
                             .problem = r.problem,
                             .chosen = r.chosen,
                             .ranks = net->ranks(),
                             .pass = r.pass,
                             .emulates = emulation::waits,
                             .repeats = {.runs = repeats}},
                            *net);
    if (net->rank() != 0) continue;
    fmt::print("{} {:.6f} {:.6f} {:.0f}\n", r.name, v.total.predicted.value(),
               v.total.measured.value(), (1 + repeats) * all_bytes(v, r));
    for (const auto& p : v.passes) {
      for (const auto& part : p.parts) {
        fmt::print(stderr, "{} {} {}: {:.6f} {:.6f}\n", r.name, name_of(p.pass), part.name,
                   part.predicted.value(), part.measured.value());
      }
    }
  }
}

}  // namespace
}  // namespace attnsim::validate

int main(int argc, char** argv) try {
  const sched_param priority{.sched_priority = 1};
  sched_setscheduler(0, SCHED_RR, &priority);  // what else runs here is not part of the cluster
  attnsim::validate::validate_all(argv[1], {argv + 2, argv + argc});
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  std::_Exit(1);
}
