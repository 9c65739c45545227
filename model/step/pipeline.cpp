#include "model/step/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/error.hpp"

namespace attnsim {
namespace {

struct pass {
  bool backward = false;
  int chunk = 0;
  int micro_batch = 0;
};

int warm_up(int ranks, int chunks, int micro_batches, int rank) {
  const int wanted = chunks == 1 ? ranks - rank - 1 : (ranks - rank - 1) * 2 + (chunks - 1) * ranks;
  return std::min(wanted, micro_batches * chunks);
}

/// The i-th forward or backward pass of a rank: micro-batches in rounds of as many as ranks, a chunk after the other.
pass numbered(bool backward, int i, int ranks, int chunks) {
  const int round = i / (ranks * chunks), within = i % (ranks * chunks);
  const int chunk = chunks == 1 ? 0 : within / ranks;
  return {backward, backward ? chunks - 1 - chunk : chunk,
          chunks == 1 ? i : round * ranks + within % ranks};
}

std::vector<pass> order_of(int ranks, int chunks, int micro_batches, int rank) {
  const int total = micro_batches * chunks, early = warm_up(ranks, chunks, micro_batches, rank);
  std::vector<pass> order;
  for (int i = 0; i < early; ++i) order.push_back(numbered(false, i, ranks, chunks));
  for (int i = early; i < total; ++i) {
    order.push_back(numbered(false, i, ranks, chunks));
    order.push_back(numbered(true, i - early, ranks, chunks));
  }
  for (int i = total - early; i < total; ++i) order.push_back(numbered(true, i, ranks, chunks));
  return order;
}

class pipeline {
 public:
  pipeline(int ranks, int chunks, int micro_batches, const stage_times& t)
      : ranks_(ranks), stages_(ranks * chunks), micro_batches_(micro_batches), times_(t) {
    const auto passes = static_cast<std::size_t>(stages_ * micro_batches);
    ends_[0].resize(passes, -1);
    ends_[1].resize(passes, -1);
    free_.resize(static_cast<std::size_t>(ranks), 0);
    result_.busy.resize(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) orders_.push_back(order_of(ranks, chunks, micro_batches, r));
    next_.resize(static_cast<std::size_t>(ranks), 0);
  }

  pipeline_run take() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < ranks_; ++r) moved |= advance(r);
    }
    for (int r = 0; r < ranks_; ++r) {
      result_.time = std::max(result_.time, seconds(free_[static_cast<std::size_t>(r)]));
      if (result_.busy[static_cast<std::size_t>(r)] >
          result_.busy[static_cast<std::size_t>(result_.slowest)])
        result_.slowest = r;
    }
    return result_;
  }

 private:
  double& end_of(bool backward, int stage, int micro_batch) {
    return ends_[backward ? 1 : 0][static_cast<std::size_t>(stage * micro_batches_ + micro_batch)];
  }

  /// When the input of a pass is there; below zero: not known yet.
  double arrival(const pass& p, int stage) {
    const double send = ranks_ > 1 ? times_.send.value() : 0;
    if (!p.backward) {
      if (stage == 0) return 0;
      const double before = end_of(false, stage - 1, p.micro_batch);
      return before < 0 ? -1 : before + send;
    }
    if (stage == stages_ - 1) return end_of(false, stage, p.micro_batch);
    const double after = end_of(true, stage + 1, p.micro_batch);
    return after < 0 ? -1 : after + send;
  }

  double duration(const pass& p, int stage) const {
    const auto s = static_cast<std::size_t>(stage);
    if (p.backward)
      return (p.micro_batch == micro_batches_ - 1 ? times_.last_backward : times_.backward)[s]
          .value();
    return (p.micro_batch == 0 ? times_.first_forward : times_.forward)[s].value();
  }

  bool advance(int r) {
    const auto rank = static_cast<std::size_t>(r);
    bool moved = false;
    for (auto& next = next_[rank]; next < orders_[rank].size(); ++next) {
      const auto& p = orders_[rank][next];
      const int stage = p.chunk * ranks_ + r;
      const double there = arrival(p, stage);
      if (there < 0) break;
      const double takes = duration(p, stage);
      free_[rank] = end_of(p.backward, stage, p.micro_batch) = std::max(free_[rank], there) + takes;
      result_.busy[rank] += seconds(takes);
      moved = true;
    }
    return moved;
  }

  int ranks_, stages_, micro_batches_;
  const stage_times& times_;
  std::vector<double> ends_[2];  // forward, backward; by stage and micro-batch
  std::vector<double> free_;
  std::vector<std::vector<pass>> orders_;
  std::vector<std::size_t> next_;
  pipeline_run result_;
};

}  // namespace

pipeline_run run_pipeline(int ranks, int chunks, int micro_batches, const stage_times& t) {
  if (chunks > 1 && micro_batches % ranks != 0) {
    throw infeasible(fmt::format(
        "interleaved stages: {} micro-batches on {} pipeline ranks; feasible: a multiple, or one "
        "chunk a rank",
        micro_batches, ranks));
  }
  return pipeline(ranks, chunks, micro_batches, t).take();
}

int chunks_in_flight(int ranks, int chunks, int micro_batches, int rank) {
  return std::min(warm_up(ranks, chunks, micro_batches, rank) + 1, micro_batches * chunks);
}

}  // namespace attnsim
