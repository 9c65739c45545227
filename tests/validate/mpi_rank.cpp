// The MPI program of mpi_test: every strategy on as many ranks as the job has, one layout, mask,
// pass and type after the other, against the oracle. Prints what fails; the exit code says whether.
//   mpi_rank             as above
//   mpi_rank kill RANK   that rank ends by SIGKILL within a run, the others must not hang
//   mpi_rank hang RANK   that rank stops taking part
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "tests/validate/small_runs.hpp"
#include "validate/transports/mpi.hpp"

namespace attnsim::validate {
namespace {

bool is_correct(transport& net, const strategy& s, const attention& a, pass_kind pass) {
  const auto program = make_schedule(s, a, pass);
  const workload work(program, a, s.tokens, true);
  const auto cpu = kernels::cpu::make_backend();
  poisoned_backend device(*cpu);
  const oracle expected(a);
  const auto own = expected.compare(executor(work, net, device).run(expected.source()).results);
  blob data(own.size() * sizeof(tensor_error));
  std::memcpy(data.data(), own.data(), data.size());
  std::vector<tensor_error> all;
  for (const auto& one : net.share(data)) {
    const auto before = all.size();
    all.resize(before + one.size() / sizeof(tensor_error));
    std::memcpy(all.data() + before, one.data(), one.size());
  }
  const auto numbers = expected.judge(pass, all);
  if (!numbers.passed && net.rank() == 0) {
    fmt::print("{}: relative error {}\n", label(s, a, pass), numbers.relative_error);
  }
  return numbers.passed;
}

bool all_correct(transport& net) {
  int turn = 0;
  bool correct = true;
  const int ranks = net.ranks();
  for (auto s : strategies(ranks, {.heads = 4, .kv_heads = 4})) {
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      ++turn;
      s.tokens = token_layout(turn % 3);
      const attention a{.heads = 4,
                        .kv_heads = 4 >> turn % 3,
                        .head_dim = 16,
                        .sequence = std::max(2, 32 / ranks) * 2 * ranks,
                        .padding = turn % 4,
                        .mask = mask_kind(turn / 2 % 2),
                        .dtype = data_type(turn % 7 % 3)};
      correct = is_correct(net, s, a, pass) && correct;
    }
  }
  if (net.rank() == 0) fmt::print("{} runs\n", turn);
  return correct;
}

/// Ends in the middle of a ring.
void fail(transport& net, bool killed) {
  const auto cpu = kernels::cpu::make_backend();
  const auto stream = cpu->create_stream();
  std::vector<int> group;
  for (int r = 0; r < net.ranks(); ++r) group.push_back(r);
  const auto ring = net.open(*cpu, stream, group);
  net.barrier();
  (void)ring;
  if (killed) raise(SIGKILL);
  sleep(20);
}

}  // namespace
}  // namespace attnsim::validate

int main(int argc, char** argv) try {
  using namespace attnsim::validate;
  const std::string what = argc > 2 ? argv[1] : "";
  const auto net = join_mpi(std::chrono::seconds(what.empty() ? 60 : 3));
  if (!what.empty() && net->rank() == std::atoi(argv[2])) fail(*net, what == "kill");
  if (!what.empty()) net->barrier();
  return all_correct(*net) ? 0 : 1;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  std::_Exit(1);
}
