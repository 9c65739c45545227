// The MPI program of mpi_test: strategies on as many ranks as the job has (on many, not all), one layout,
// mask, pass and type after the other, against the oracle, and on up to four layers of a transformer. Prints what fails; the exit code says whether.
//   mpi_rank                      as above
//   mpi_rank kill RANK SECONDS    a ring in which that rank ends by SIGKILL
//   mpi_rank hang RANK SECONDS    a ring in which that rank stops: the others give up after so long
//   mpi_rank repeat RANK SECONDS  a ring again and again, without end unless messages fail for so long
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>

#include "tests/every_strategy.hpp"
#include "tests/validate/small_layers.hpp"
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

bool is_correct(transport& net, const layer_case& c) {
  const auto on = small_cluster();
  const auto plan = plan_of(c, on);
  const auto cpu = kernels::cpu::make_backend();
  const auto found = run_layer(*plan, layer_oracle(*plan), net, *cpu);
  if (!found.passed && net.rank() == 0) fmt::print("{}:\n{}", label(c), listed(found));
  return found.passed;
}

bool all_correct(transport& net) {
  int turn = 0, variant = 0, runs = 0;
  bool correct = true;
  const int ranks = net.ranks();
  const int stride = ranks > 4 ? 41 : ranks > 2 ? 11 : 1;
  // Each schedule in each pass, and of all strategies one of `stride`.
  std::set<std::pair<std::string, pass_kind>> seen;
  for (auto s : every_strategy(ranks, {.heads = 4, .kv_heads = 4})) {
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      if (++turn % stride != 0 && seen.contains({s.schedule, pass})) continue;
      ++variant;
      s.tokens = token_layout(variant % 3);
      const attention a{.heads = 4,
                        .kv_heads = 4 >> variant % 3,
                        .head_dim = 16,
                        .v_head_dim = variant % 5 < 2 ? 8 : 0,
                        .sequence = std::max(2, 32 / ranks) * 2 * ranks,
                        .padding = variant % 4,
                        .mask = mask_kind(variant / 2 % 2),
                        .sinks = variant % 3 == 1,
                        .dtype = data_type(variant % 7 % 3)};
      if (!refusal(s, a).empty() || !has_pass(s, pass)) continue;
      seen.emplace(s.schedule, pass);
      ++runs;
      correct = is_correct(net, s, a, pass) && correct;
      if (pass == pass_kind::backward) continue;
      auto after_prefix = a;
      after_prefix.prefix = (variant % 4 == 0 ? 64 : variant % 7) * 2 * ranks;
      ++runs;
      correct = is_correct(net, s, after_prefix, pass) && correct;
    }
  }
  for (int i = 0; i < 12; ++i) {
    const int tensor_parallel = ranks % 2 == 0 ? 1 + i / 6 : 1, shards = ranks / tensor_parallel;
    attention a{.batch = 1 + i % 2,
                .heads = std::int64_t{4} * ranks,
                .kv_heads = i == 3 ? 1 : std::int64_t{tensor_parallel} << i % 2,
                .head_dim = 16,
                .v_head_dim = i % 3 == 0 ? 8 : 0,
                .sequence = 1 + i % 5,
                .prefix = i * i * 13,
                .sinks = i % 2 == 1,
                .latent = i == 3,
                .dtype = data_type(i % 3)};
    if (a.batch == 2 && i > 4) a.prefixes = {a.prefix / 3, a.prefix};
    const char* const schedules[] = {"helix", "dcp", "dcp-a2a"};
    const strategy s{.schedule = schedules[i % 3],
                     .rows = shards,
                     .cols = 1,
                     .tensor_parallel = tensor_parallel,
                     .tokens = token_layout(i % 4)};
    ++runs;
    correct = is_correct(net, s, a, pass_kind::forward) && correct;
  }
  for (int i = 0; i < 8; ++i) {
    const std::int64_t tokens = std::int64_t{8} * ranks;
    const attention a{.heads = 4,
                      .kv_heads = 4 >> i % 3,
                      .head_dim = 16,
                      .sequence = tokens,
                      .padding = i % 3,
                      .window = 1 + i * (i % 2 == 0 ? 1 : tokens / 8),
                      .kept_first = i / 2 % 2 * 3,
                      .sinks = i > 4,
                      .dtype = data_type(i % 3)};
    const strategy s{
        .schedule = "halo", .rows = ranks, .cols = 1, .tokens = token_layout::contiguous};
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      ++runs;
      correct = is_correct(net, s, a, pass) && correct;
    }
  }
  for (int i = 0; i < 8; ++i) {
    attention a{.heads = std::int64_t{2} * ranks,
                .kv_heads = std::int64_t{2} * ranks,
                .head_dim = 20,
                .v_head_dim = 12,
                .sequence = std::int64_t{4} * ranks,
                .prefix = std::int64_t{i / 2 % 2 * 12} * ranks,
                .latent_rank = 10,
                .rotary = 6};
    if (i % 3 == 2) a.wire_dtype = data_type::fp8;
    const bool exchanges = i > 5;
    const strategy s{.schedule = exchanges    ? "ulysses"
                                 : i % 2 == 0 ? "ring"
                                              : "allgather",
                     .rows = exchanges ? 1 : ranks,
                     .cols = 1,
                     .ulysses = exchanges ? ranks : 1,
                     .tokens = token_layout(i % 4),
                     .keys_sent = key_form::latent};
    ++runs;
    correct = is_correct(net, s, a, pass_kind::forward) && correct;
  }
  for (int i = 0; i < 4; ++i) {
    const attention a{.heads = 4,
                      .kv_heads = 2,
                      .head_dim = 16,
                      .sequence = std::int64_t{8} * ranks,
                      .window = 1 + 3 * i,
                      .kept_first = 1 + i};
    const strategy s{.schedule = i % 2 == 0 ? "ring" : "allgather",
                     .rows = ranks,
                     .cols = 1,
                     .tokens = token_layout(i % 4)};
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      ++runs;
      correct = is_correct(net, s, a, pass) && correct;
    }
  }
  for (int i = 0; i < 4; ++i) {
    attention a{.heads = 4,
                .kv_heads = 4 >> i % 3,
                .head_dim = 16,
                .sequence = std::int64_t{4} * ranks,
                .prefix = std::int64_t{4} * ranks * (i % 2),
                .dtype = i % 2 == 0 ? data_type::bf16 : data_type::fp8};
    if (i < 3) a.wire_dtype = i % 2 == 0 ? data_type::fp8 : data_type::bf16;
    const strategy s{.schedule = i < 2 ? "ring" : "allgather", .rows = ranks, .cols = 1};
    ++runs;
    correct = is_correct(net, s, a, pass_kind::forward) && correct;
  }
  for (const auto& c : layer_cases(ranks, ranks > 4 ? 0 : ranks)) {
    ++runs;
    correct = is_correct(net, c) && correct;
  }
  if (net.rank() == 0) fmt::print("{} runs\n", runs);
  return correct;
}

/// A device that ends its process, or stops for long, in its second kernel call.
class failing_backend final : public forwarding_backend {
 public:
  failing_backend(kernels::backend& inner, bool kills) : forwarding_backend(inner), kills_(kills) {}

  void forward(stream_id s, const kernels::forward_arguments& a) override {
    if (++calls_ == 2)
      call(s, [kills = kills_] { kills ? (void)raise(SIGKILL) : (void)sleep(600); });
    inner().forward(s, a);
  }

 private:
  bool kills_;
  int calls_ = 0;
};

enum class failure { none, killed, hangs };

/// A ring in which one rank may fail; without end where none does.
void run_ring(transport& net, failure own, bool without_end) {
  const attention a{.heads = 2, .kv_heads = 2, .head_dim = 16, .sequence = 8 * net.ranks()};
  const strategy s{.schedule = "ring", .rows = net.ranks(), .cols = 1};
  const auto program = make_schedule(s, a, pass_kind::forward);
  const workload work(program, a, s.tokens, true);
  const auto cpu = kernels::cpu::make_backend();
  failing_backend failing(*cpu, own == failure::killed);
  const oracle expected(a);
  executor runs(work, net, own == failure::none ? *cpu : failing);
  do runs.run(expected.source());
  while (without_end);
}

}  // namespace
}  // namespace attnsim::validate

int main(int argc, char** argv) try {
  using namespace attnsim::validate;
  if (argc < 4) return all_correct(*join_mpi(std::chrono::seconds(120))) ? 0 : 1;
  const auto net = join_mpi(std::chrono::seconds(std::atoi(argv[3])));
  const std::string how = argv[1];
  const bool chosen = how != "repeat" && net->rank() == std::atoi(argv[2]);
  run_ring(*net,
           !chosen         ? failure::none
           : how == "kill" ? failure::killed
                           : failure::hangs,
           how == "repeat");
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  sleep(5);  // mpirun ends the others when the first one does: let them say what they miss
  std::_Exit(1);
}
