// How much of a schedule's communication hides under its computation, by launch order, stream priority and channels:
//   tests/gpu/launch RANKS overlap [--kernel cuda|cudnn] [--schedule ring] [--grid RxC] [--seq N] [--heads N] [--kv-heads N]
//       [--mask full] [--pass forward] [--launch communication-first|compute-first|both] [--priorities 1]
//       [--channels N] [--repeats N] [--transport LABEL] [--timeline FILE]
// A line a launch order: the median run's time; its operations' times alone (computation, communication); the bound,
// which for a ring of two is max(first kernel, transfer), each alone, + what the run took from the second kernel on;
// time over bound. --timeline appends each rank's operations in the median run, as JSON lines.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "model/schedule/algorithms/schedules.hpp"
#include "tests/gpu/rank.hpp"
#include "validate/executor.hpp"
#include "validate/oracle.hpp"

namespace attnsim::validate {
namespace {

timeline median(std::vector<timeline> runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const auto& a, const auto& b) { return a.duration() < b.duration(); });
  return *middle;
}

/// The program without its computation: the same messages one behind the other.
schedule communication_of(schedule s) {
  std::erase_if(s.program, [](const operation& op) { return !is_communication(op.kind); });
  derive_needs(s);
  return s;
}

class study {
 public:
  study(const options& o, const job_place& place)
      : options_(o),
        net_(join(o, place)),
        device_(kernels::make_device(kernel_of(o), {.local_rank = place.local_rank,
                                                    .priorities = o.count("priorities", 1) != 0})),
        problem_{.heads = o.count("heads", 32),
                 .kv_heads = o.count("kv-heads", o.count("heads", 32)),
                 .head_dim = o.count("head-dim", 128),
                 .sequence = o.count("seq", 16384),
                 .mask = parse_mask(o.text("mask", "full"))},
        pass_(parse_pass(o.text("pass", "forward"))),
        inputs_(problem_, 1) {}

  bool run() {
    const auto orders = options_.text("launch", "both");
    for (const auto order : {launch_order::communication_first, launch_order::compute_first}) {
      if (orders == "both" || orders == name_of(order)) measure(order);
    }
    return true;
  }

 private:
  void measure(launch_order order) {
    strategy s{.schedule = options_.text("schedule", "ring"), .launch = order};
    if (problem_.mask == mask_kind::full) s.tokens = token_layout::contiguous;
    const auto grid = options_.text("grid", "");
    if (!grid.empty()) std::sscanf(grid.c_str(), "%dx%d", &s.rows, &s.cols);
    s = complete(s, problem_, net_->ranks());
    const auto program = make_schedule(s, problem_, pass_);
    const auto whole = run(program, s.tokens);
    if (kernel_ == 0) {
      transfer_ = run(communication_of(program), s.tokens).duration().value();
      kernel_ = kernel_alone(program, s.tokens);
    }
    if (net_->rank() != 0) return;
    print(s, program, whole);
    if (!options_.text("timeline", "").empty()) write(s, program, whole);
  }

  timeline run(const schedule& program, token_layout layout) {
    const workload work(program, problem_, layout, true);
    executor runs(work, *net_, *device_);
    const auto source = [this](tensor what, const token_set& tokens, const head_range& heads,
                               data_type type) {
      auto& made = shards_[{what, type}];  // a rank has one shard of each
      if (made.data.empty()) made = make(what, tokens, heads, type);
      return made;
    };
    std::vector<timeline> timelines;
    for (int i = 0; i < options_.count("repeats", 7) + 1; ++i) {
      auto done = runs.run(source);
      if (i > 0) timelines.push_back(std::move(done.times));
    }
    return median(std::move(timelines));
  }

  /// Random numbers; for o and lse, what backward needs is any of their size.
  shard make(tensor what, const token_set& tokens, const head_range& heads, data_type type) const {
    if (what != tensor::o && what != tensor::lse) return inputs_.make(what, tokens, heads, type);
    auto made = inputs_.make(what == tensor::o ? tensor::q : tensor::delta, tokens, heads, type);
    made.what = what;
    return made;
  }

  /// The median of single forward calls on the rank's own block, the device idle before each.
  double kernel_alone(const schedule& program, token_layout layout) {
    const workload work(program, problem_, layout, true);
    for (const auto& op : work.program().program) {
      if (op.kind != op_kind::attention) continue;
      const auto tiles = work.tiles(op, net_->rank());
      return tiles.empty() ? 0 : time_of(tiles.front());
    }
    return 0;
  }

  double time_of(const tile& t) {
    const auto stream = device_->create_stream();
    std::vector<void*> held;
    const auto place = [&](tensor what, std::int64_t tokens) {
      const auto heads = head_count(what, all_heads(problem_));
      const auto shape = shape_of(problem_, what, heads, tokens);
      const auto type = type_of(problem_, what, precision::storage);
      held.push_back(device_->allocate(kernels::dense_bytes(type, shape)));
      const auto made = inputs_.make(what == tensor::o     ? tensor::q
                                     : what == tensor::lse ? tensor::delta
                                                           : what,
                                     {{0, tokens, 1}}, type);
      device_->copy(stream, held.back(), made.data.data(), made.data.size());
      device_->synchronize(stream);
      return placed(held.back(), type, shape);
    };
    const kernels::forward_arguments a{.shape = {.batch = problem_.batch,
                                                 .heads = problem_.heads,
                                                 .kv_heads = problem_.kv_heads,
                                                 .head_dim = problem_.head_dim,
                                                 .rows = t.rows,
                                                 .cols = t.cols,
                                                 .mask = t.mask},
                                       .query = place(tensor::q, t.rows),
                                       .key = place(tensor::k, t.cols),
                                       .value = place(tensor::v, t.cols),
                                       .output = place(tensor::o, t.rows),
                                       .lse = place(tensor::lse, t.rows)};
    std::vector<double> times;
    for (int i = 0; i < 10; ++i) {
      const auto begin = device_->record(stream);
      device_->forward(stream, a);
      const auto end = device_->record(stream);
      if (i > 0) times.push_back(device_->seconds_between(begin, end));
      device_->release(begin);
      device_->release(end);
    }
    device_->synchronize(stream);
    for (auto* memory : held) device_->free(memory);
    std::nth_element(times.begin(), times.begin() + 4, times.end());
    return times[4];
  }

  void print(const strategy& s, const schedule& program, const timeline& whole) const {
    const auto& slowest = whole.slowest();
    double last = 0;
    for (const auto& i : slowest.intervals) {
      const auto& op = program.program[i.operation];
      if (is_kernel(op.kind)) last = 0;
      if (op.stream == 0) last += (i.end - i.start).value();
    }
    const double bound = std::max(kernel_, transfer_) + last;
    fmt::print(
        "{},{},{},{}x{},{},{},{},{},{},{},{},{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{:.3f}"
        "\n",
        options_.text("transport", "nvlink"), device_->name(), s.schedule, s.rows, s.cols,
        name_of(pass_), name_of(problem_.mask), problem_.heads, problem_.kv_heads,
        problem_.sequence, name_of(s.launch), options_.count("priorities", 1),
        options_.text("channels", "default"), options_.count("blocking", 0),
        1e6 * whole.duration().value(), 1e6 * slowest.compute.value(), 1e6 * kernel_,
        1e6 * transfer_, 1e6 * last, 1e6 * bound, whole.duration().value() / bound);
    std::fflush(stdout);
  }

  void write(const strategy& s, const schedule& program, const timeline& whole) const {
    std::FILE* file = std::fopen(options_.text("timeline", "").c_str(), "a");
    if (!file) throw std::runtime_error("cannot write the timeline");
    for (const auto& rank : whole.ranks) {
      fmt::print(
          file,
          R"({{"transport":"{}","kernel":"{}","schedule":"{}","grid":[{},{}],"pass":"{}","heads":{},"sequence":{},)"
          R"("launch":"{}","channels":"{}","blocking":{},"rank":{},"operations":[)",
          options_.text("transport", "nvlink"), device_->name(), s.schedule, s.rows, s.cols,
          name_of(pass_), problem_.heads, problem_.sequence, name_of(s.launch),
          options_.text("channels", "default"), options_.count("blocking", 0), rank.rank);
      const char* comma = "";
      for (const auto& i : rank.intervals) {
        const auto& op = program.program[i.operation];
        fmt::print(file, R"({}["{}","{}",{:.1f},{:.1f}])", comma, name_of(op.kind),
                   program.streams[static_cast<std::size_t>(op.stream)], 1e6 * i.start.value(),
                   1e6 * i.end.value());
        comma = ",";
      }
      fmt::print(file, "]}}\n");
    }
    std::fclose(file);
  }

  const options& options_;
  std::unique_ptr<transport> net_;
  std::unique_ptr<kernels::backend> device_;
  attention problem_;
  pass_kind pass_;
  oracle inputs_;
  double kernel_ = 0, transfer_ = 0;  ///< alone
  std::map<std::pair<tensor, data_type>, shard> shards_;
};

}  // namespace
}  // namespace attnsim::validate

int main(int argc, char** argv) {
  using namespace attnsim::validate;
  return run_rank(argc, argv,
                  [](const options& o, const job_place& place) { return study(o, place).run(); });
}
