// Every schedule, grid, order and reduction that some algorithm takes on this many ranks, run over NCCL on GPUs, forward
// and backward, against the fp64 oracle:
//   tests/gpu/launch RANKS schedule_check [--kernel cuda|cudnn] [--seconds N] [--tokens-per-rank N] [--csv FILE] [--graph 1] [--first N]
//   ... [--fail hang|kill --rank R --time-out S]    that rank stops or ends in the middle, the others must say so
// Memory starts as NaN. --graph: each once more as a CUDA graph, which is what is checked. --first: of the 4 square problems
// (4: none) and, after them, of the questions of inference and of other shapes: prefixes, decoding, latents, sinks, windows, heads
// that do not divide. --seconds: after so long the rest is left out (and counted). Prints a line a problem and pass.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "model/error.hpp"
#include "tests/every_strategy.hpp"
#include "tests/gpu/rank.hpp"
#include "tests/validate/small_runs.hpp"

namespace attnsim::validate {
namespace {

using clock = std::chrono::steady_clock;

/// Leaves a run at its first local operation.
class deserter final : public local_observer {
 public:
  explicit deserter(bool killed) : killed_(killed) {}
  void begin(kernels::stream_id, std::size_t) override {
    if (killed_) raise(SIGKILL);
    sleep(600);
  }
  void end(kernels::stream_id, std::size_t) override {}

 private:
  bool killed_;
};

struct tally {
  int runs = 0, failed = 0, left_out = 0, refused = 0;
  double worst = 0, seconds = 0;
  std::string why_refused;
};

/// A question that is no square.
struct other_question {
  std::string name;
  attention asked;
  bool trains = false;  ///< its backward pass, too
  key_form keys_sent = key_form::expanded;
};

std::vector<other_question> other_questions(int ranks) {
  std::vector<other_question> list;
  const std::int64_t each = 2 * (ranks < 4 ? 48 : 160 / ranks);
  const attention few{.heads = 8, .kv_heads = 2, .sequence = each * ranks};
  for (const int times : {1, 7, 63}) {
    auto a = few;
    if (times == 63) a.sequence = 4 * ranks;
    a.prefix = times * a.sequence;
    a.dtype = times == 7 ? data_type::fp16 : data_type::bf16;
    list.push_back({.name = fmt::format("prefix of {} times the new tokens", times), .asked = a});
  }
  auto a = few;
  a.mask = mask_kind::full;
  a.kv_sequence = 3 * each * ranks;
  list.push_back({.name = "another sequence's keys", .asked = a, .trains = true});
  for (const int tokens : {1, 4}) {
    attention decoding{.batch = 3,
                       .heads = 8 * ranks,
                       .kv_heads = ranks,
                       .head_dim = tokens == 1 ? 128 : 64,
                       .sequence = tokens,
                       .prefix = 1500};
    list.push_back({.name = fmt::format("decoding, {} new", tokens), .asked = decoding});
    decoding.kv_heads = 1;
    decoding.sinks = true;
    decoding.prefixes = {1500, 3, 700};
    list.push_back(
        {.name = fmt::format("decoding, {} new, three lengths, sinks, one K/V head", tokens),
         .asked = decoding});
  }
  attention latents{
      .heads = 4, .kv_heads = 4, .head_dim = 192, .v_head_dim = 128, .sequence = each * ranks};
  list.push_back({.name = "keys of 192, values of 128", .asked = latents});
  list.push_back({.name = "absorbed latents",
                  .asked = {.heads = 8 * ranks,
                            .kv_heads = 1,
                            .head_dim = 576,
                            .v_head_dim = 512,
                            .sequence = 4 * ranks,
                            .prefix = 500 * ranks,
                            .latent = true}});
  latents.latent_rank = 128;
  latents.rotary = 64;
  list.push_back({.name = "latents sent", .asked = latents, .keys_sent = key_form::latent});
  latents.prefix = 3 * each * ranks;
  list.push_back({.name = "cached latents sent", .asked = latents, .keys_sent = key_form::latent});
  attention sinks{
      .heads = 4, .kv_heads = 2, .head_dim = 64, .sequence = each * ranks, .sinks = true};
  list.push_back({.name = "sinks", .asked = sinks, .trains = true});
  sinks.window = 3 * each / 4;
  list.push_back({.name = "sinks, a window", .asked = sinks, .trains = true});
  sinks.kept_first = 4;
  list.push_back({.name = "sinks, a window, 4 kept tokens", .asked = sinks});
  attention uneven{
      .heads = 2 * ranks + 3, .kv_heads = 2 * ranks + 3, .head_dim = 64, .sequence = each * ranks};
  list.push_back({.name = "heads that do not divide", .asked = uneven, .trains = true});
  uneven.heads = 2 * uneven.kv_heads;
  list.push_back({.name = "groups that do not divide", .asked = uneven, .trains = true});
  return list;
}

class checker {
 public:
  checker(const options& o, const job_place& place)
      : options_(o),
        net_(join(o, place)),
        device_(kernels::make_device(
            kernel_of(o),
            {.local_rank = place.local_rank, .local_ranks = place.local_ranks, .poison = true})),
        csv_(place.rank == 0 && !o.text("csv", "").empty()
                 ? std::fopen(o.text("csv", "").c_str(), "a")
                 : nullptr) {}
  ~checker() {
    if (csv_) std::fclose(csv_);
  }

  bool run() {
    if (const auto how = options_.text("fail", ""); !how.empty()) return desert(how == "kill");
    bool correct = true;
    const std::pair<mask_kind, int> problems[] = {
        {mask_kind::causal, 1}, {mask_kind::full, 4}, {mask_kind::causal, 4}, {mask_kind::full, 1}};
    for (std::size_t i = options_.count("first", 0); i < std::size(problems); ++i)
      correct = problem(problems[i].first, problems[i].second) && correct;
    const auto others = other_questions(net_->ranks());
    const int skipped = std::max<int>(0, options_.count("first", 0) - int(std::size(problems)));
    for (std::size_t i = std::size_t(skipped); i < others.size(); ++i)
      correct = question(others[i]) && correct;
    return correct;
  }

 private:
  bool first() const { return net_->rank() == 0; }

  bool problem(mask_kind mask, int kv_heads) {
    const int ranks = net_->ranks();
    const int each = options_.count("tokens-per-rank", ranks < 4 ? 300 : 640 / ranks);
    const attention a{.heads = 4,
                      .kv_heads = kv_heads,
                      .head_dim = kv_heads == 1 && ranks <= 4 ? 128 : 64,
                      .sequence = each * ranks,
                      .mask = mask,
                      .dtype = kv_heads == 1 ? data_type::bf16 : data_type::fp16};
    const oracle expected(a, 1e12);
    bool correct = true;
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      tally t;
      int turn = 0;
      for (auto s : every_strategy(ranks, a)) {
        s.tokens = mask == mask_kind::full ? token_layout::contiguous : token_layout(turn++ % 3);
        s.partials = s.gradients = turn % 2 ? precision::storage : precision::fp32;
        if (has_pass(s, pass) && refusal(s, a).empty()) one(s, a, pass, expected, t);
      }
      report(fmt::format("square, {}", name_of(mask)), a, pass, t);
      correct = correct && t.failed == 0;
    }
    return correct;
  }

  std::vector<strategy> strategies_for(const other_question& q) const {
    auto all = every_strategy(net_->ranks(), q.asked);
    for (const auto& one : algorithms()) {
      if (one.for_windows)
        all.push_back({.schedule = one.name,
                       .rows = net_->ranks(),
                       .cols = 1,
                       .tokens = token_layout::contiguous});
    }
    return all;
  }

  /// Also whether the layout does with the tokens.
  bool takes(const strategy& s, const attention& a) const {
    const bool whole = find_algorithm(s.schedule).whole_queries;
    return refusal(s, a).empty() &&
           (whole || padded_sequence(a.sequence, s.tokens, net_->ranks()) == a.sequence);
  }

  bool question(const other_question& q) {
    const oracle expected(q.asked, 1e12);
    bool correct = true;
    for (const auto pass : {pass_kind::forward, pass_kind::backward}) {
      if (pass == pass_kind::backward && !q.trains) continue;
      tally t;
      int turn = 0;
      for (auto s : strategies_for(q)) {
        s.keys_sent = q.keys_sent;
        if (!find_algorithm(s.schedule).for_windows) s.tokens = token_layout(turn % 4);
        s.partials = s.gradients = ++turn % 2 ? precision::storage : precision::fp32;
        if (has_pass(s, pass) && takes(s, q.asked)) one(s, q.asked, pass, expected, t);
      }
      report(q.name, q.asked, pass, t);
      correct = correct && t.failed == 0;
    }
    return correct;
  }

  void report(const std::string& name, const attention& a, pass_kind pass, const tally& t) const {
    if (!first()) return;
    fmt::print(
        "{} ranks, {}, {}, {}, {}/{} heads of {}/{}: {} runs, {} failed, {} left out, largest "
        "relative error {:.2e}, {:.1f} s\n",
        net_->ranks(), device_->name(), name, name_of(pass), a.heads, a.kv_heads, a.head_dim,
        a.value_dim(), t.runs, t.failed, t.left_out, t.worst, t.seconds);
    if (t.refused > 0) fmt::print("  {} refused: {}\n", t.refused, t.why_refused);
    std::fflush(stdout);
  }

  /// One that the device does not do is counted, on all ranks alike.
  void one(const strategy& s, const attention& a, pass_kind pass, const oracle& expected,
           tally& t) {
    try {
      execute(s, a, pass, expected, t);
    } catch (const infeasible& e) {
      ++t.refused;
      t.why_refused = e.what();
    }
  }

  void execute(const strategy& s, const attention& a, pass_kind pass, const oracle& expected,
               tally& t) {
    if (!goes_on()) {
      ++t.left_out;
      return;
    }
    const auto from = clock::now();
    const auto program = make_schedule(s, a, pass);
    const workload work(program, a, s.tokens, true);
    executor runs(work, *net_, *device_);
    auto done = runs.run(expected.source());
    if (options_.count("graph", 0) == 1) done = runs.run(expected.source(), launch_mode::graph);
    const auto numbers = judged(pass, expected, expected.compare(done.results));
    ++t.runs;
    t.worst = std::max(t.worst, numbers.relative_error);
    t.seconds += std::chrono::duration<double>(clock::now() - from).count();
    if (!numbers.passed) ++t.failed;
    if (!first()) return;
    if (!numbers.passed)
      fmt::print("FAILED: {}: relative error {:.3e}, largest {:.3e}\n", label(s, a, pass),
                 numbers.relative_error, numbers.max_error);
    if (csv_)
      fmt::print(csv_, "{},{},{},{},{}x{},{},{},{},{},{},{},{:.3e},{}\n", device_->name(),
                 net_->ranks(), s.schedule, name_of(pass), s.rows, s.cols, name_of(a.mask),
                 name_of(s.tokens), name_of(s.order), name_of(s.reduction), a.kv_heads,
                 name_of(a.dtype), numbers.relative_error, numbers.passed ? "ok" : "FAILED");
  }

  /// Rank 0's clock decides for all.
  bool goes_on() {
    const bool own = std::chrono::duration<double>(clock::now() - start_).count() <
                     options_.number("seconds", 1e9);
    return net_->share({std::byte(own)}).at(0).at(0) != std::byte(0);
  }

  /// A ring's backward pass, once as it should be, then without one rank.
  bool desert(bool killed) {
    const attention a{.heads = 4, .kv_heads = 4, .head_dim = 64, .sequence = 128 * net_->ranks()};
    const auto s = complete({.schedule = "ring"}, a, net_->ranks());
    const auto program = make_schedule(s, a, pass_kind::backward);
    const workload work(program, a, s.tokens, true);
    const oracle expected(a);
    deserter gone(killed);
    executor(work, *net_, *device_).run(expected.source());
    executor(work, *net_, *device_, net_->rank() == options_.count("rank", 1) ? &gone : nullptr)
        .run(expected.source());
    return false;
  }

  numerics judged(pass_kind pass, const oracle& expected, const std::vector<tensor_error>& own) {
    blob data(own.size() * sizeof(tensor_error));
    std::memcpy(data.data(), own.data(), data.size());
    std::vector<tensor_error> all;
    for (const auto& one : net_->share(data)) {
      const auto before = all.size();
      all.resize(before + one.size() / sizeof(tensor_error));
      std::memcpy(all.data() + before, one.data(), one.size());
    }
    return expected.judge(pass, all);
  }

  const options& options_;
  std::unique_ptr<transport> net_;
  std::unique_ptr<kernels::backend> device_;
  std::FILE* csv_;
  clock::time_point start_ = clock::now();
};

}  // namespace
}  // namespace attnsim::validate

int main(int argc, char** argv) {
  using namespace attnsim::validate;
  return run_rank(argc, argv,
                  [](const options& o, const job_place& place) { return checker(o, place).run(); });
}
