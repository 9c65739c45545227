#include "ask/step_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

/// Attention's strategies on so many tensor and context ranks, fastest by the closed form first.
using ranking = std::vector<std::pair<double, std::string>>;

std::vector<std::int64_t> open_or(const std::optional<std::int64_t>& given,
                                  std::vector<std::int64_t> open) {
  return given ? std::vector{*given} : std::move(open);
}

template <typename Named>
std::vector<Named> open_or(const std::optional<Named>& given, std::initializer_list<Named> open) {
  return given ? std::vector{*given} : std::vector<Named>(open);
}

/// "tp 8 cp 16 pp 4 dp 1, micro-batch 1, recompute full, shard optimizer".
std::string words(const step_question& q) {
  return fmt::format("tp {} cp {} pp {} dp {}, micro-batch {}, recompute {}, shard {}",
                     q.tensor.value_or(1), q.context.value_or(1), q.pipeline.value_or(1),
                     q.data.value_or(1), q.micro_batch.value_or(1),
                     name_of(q.recompute.value_or(recomputation::none)),
                     name_of(q.shard.value_or(sharding::none)));
}

class search {
 public:
  search(const step_plan_request& r, const cluster& c, const step_plan_progress& progress)
      : request_(r),
        cluster_(c),
        progress_(progress),
        model_(read_transformer(r.asked.model)),
        ranks_(ranks_of(r.asked.base, c)),
        known_(c) {}

  step_plan take() {
    consider_all();
    estimate_all();
    simulate_best();
    for (auto& [reason, out] : rejected_) result_.rejected.push_back(std::move(out));
    if (result_.candidates.empty()) refuse();
    return std::move(result_);
  }

 private:
  struct candidate {
    step_question asked;
    double bound = 0;
    double time = 0;
  };

  bool trains() const { return request_.asked.task == step_task::train; }

  void reject(const std::string& reason, const step_question& q, double need = 0) {
    auto& out = rejected_[reason];
    out.reason = reason;
    ++out.candidates;
    const auto nearest = nearest_.find(reason);
    if (nearest != nearest_.end() && nearest->second <= need) return;
    nearest_[reason] = need;
    out.example = need > 0 ? fmt::format("{}: {}", words(q),
                                         to_string(byte_count(static_cast<std::int64_t>(need))))
                           : words(q);
  }

  void consider_all() {
    const auto& q = request_.asked;
    for (const auto tensor : open_or(q.tensor, divisors_of(model_.shape.kv_heads))) {
      if (ranks_ % tensor != 0) continue;
      for (const auto context : open_or(q.context, divisors_of(ranks_ / tensor))) {
        if (ranks_ / tensor % context != 0) continue;
        for (const auto pipeline : open_or(q.pipeline, divisors_of(ranks_ / tensor / context)))
          consider_cut(tensor, context, pipeline);
      }
    }
  }

  void consider_cut(std::int64_t tensor, std::int64_t context, std::int64_t pipeline) {
    auto q = request_.asked;
    if (ranks_ % (tensor * context * pipeline) != 0 || pipeline > model_.layers) return;
    const auto data = ranks_ / (tensor * context * pipeline);
    if (q.data && *q.data != data) return;
    q.tensor = tensor;
    q.context = context;
    q.pipeline = pipeline;
    q.data = data;
    const auto global = *q.global_batch;
    if (global % data != 0) return reject("the batch is not a multiple of the data ranks", q);
    constexpr std::int64_t most_sequences = 8;
    for (const auto micro : open_or(request_.asked.micro_batch, divisors_of(global / data))) {
      if (micro > most_sequences && !request_.asked.micro_batch) continue;
      q.micro_batch = micro;
      for (const auto chunks :
           open_or(request_.asked.chunks, chunk_counts(pipeline, global / data / micro)))
        consider_layers(q, chunks);
    }
  }

  std::vector<std::int64_t> chunk_counts(std::int64_t pipeline, std::int64_t micro_batches) const {
    constexpr std::int64_t most = 8;
    std::vector<std::int64_t> counts{1};
    if (pipeline == 1 || micro_batches % pipeline != 0 || !trains()) return counts;
    for (std::int64_t c = 2; c <= most; ++c) {
      if (model_.layers % (c * pipeline) == 0) counts.push_back(c);
    }
    return counts;
  }

  void consider_layers(step_question q, std::int64_t chunks) {
    q.chunks = chunks;
    const auto stage = *q.tensor * *q.context * *q.data;
    std::vector<std::int64_t> experts{1};
    if (model_.experts > 0) {
      experts = divisors_of<std::int64_t>(model_.experts);
      std::erase_if(experts, [&](std::int64_t e) { return stage % e != 0; });
    }
    for (const auto expert : open_or(request_.asked.expert, experts)) {
      q.expert = expert;
      for (const auto recompute : recomputations()) {
        q.recompute = recompute;
        for (const auto shard : shardings(*q.pipeline)) {
          q.shard = shard;
          consider(q);
        }
      }
    }
  }

  std::vector<recomputation> recomputations() const {
    if (!trains()) return {recomputation::none};
    return open_or(request_.asked.recompute,
                   {recomputation::none, recomputation::selective, recomputation::full});
  }

  /// Sharded gradients and parameters are moved for every micro-batch: with a pipeline frameworks shard the optimizer alone.
  std::vector<sharding> shardings(std::int64_t pipeline) const {
    if (!trains()) return {sharding::none};
    if (request_.asked.shard) return {*request_.asked.shard};
    if (pipeline > 1) return {sharding::optimizer};
    return {sharding::optimizer, sharding::parameters};
  }

  void consider(const step_question& q) {
    ++result_.considered;
    try {
      const auto b = bound_of(q, cluster_, model_);
      const double room = memory_for(q, cluster_);
      if (b.memory > room) return reject("out of memory", q, b.memory);
      candidates_.push_back({q, b.time, 0});
    } catch (const infeasible& e) {
      reject(e.field().empty() ? std::string(e.what()) : e.field() + " does not fit", q);
    }
  }

  /// Schedules that run on these ranks, by the closed form of one layer.
  const ranking& schedules_on(const step_question& q) {
    const auto key = std::tuple(*q.tensor, *q.context, *q.micro_batch);
    const auto found = rankings_.find(key);
    if (found != rankings_.end()) return found->second;
    ranking all;
    for (const auto& one : algorithms()) {
      if (!is_wanted(one, *q.context)) continue;
      auto asked_schedule = q;
      asked_schedule.base.schedule = one.name;
      asked_schedule.base.by = prediction_method::analytic;
      try {
        all.emplace_back(attention_seconds(asked_schedule, model_, known_), one.name);
      } catch (const infeasible&) {  // refused on these ranks
      }
    }
    std::sort(all.begin(), all.end());
    return rankings_.emplace(key, std::move(all)).first->second;
  }

  bool is_wanted(const algorithm& one, std::int64_t context) const {
    const auto& names = request_.schedules;
    if (!names.empty()) return std::find(names.begin(), names.end(), one.name) != names.end();
    if (context == 1) return one.name == question{}.schedule;  // nothing travels
    if (one.whole_queries) return false;                       // the tensor degree is the step's
    return is_searched(one, trains() ? pass_kind::both : pass_kind::forward,
                       request_.asked.base.prefix > 0, model_.shape.window > 0);
  }

  void estimate_all() {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const auto& a, const auto& b) { return a.bound < b.bound; });
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      auto& one = candidates_[i];
      if (progress_) progress_(i, candidates_.size());
      one.time = std::numeric_limits<double>::infinity();
      if (one.bound > request_.slack * best) {
        reject("its operations alone take longer", one.asked);
        continue;
      }
      const auto& schedules = schedules_on(one.asked);
      if (schedules.empty()) {
        reject("no schedule of attention runs on these ranks", one.asked);
        continue;
      }
      one.asked.base.schedule = schedules.front().second;
      one.asked.base.by = prediction_method::analytic;
      const auto a = estimated(one.asked);
      if (!a) continue;
      one.time = a->time.value();
      best = std::min(best, one.time);
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }

  std::optional<step_answer> estimated(const step_question& q) {
    ++result_.estimated;
    auto a = answer(q, cluster_, model_, known_, step_detail::time_only);
    if (!a.feasible) {
      reject("out of memory", q, a.memory.total());
      return {};
    }
    return a;
  }

  void simulate_best() {
    const auto finalists = std::min(request_.finalists, candidates_.size());
    for (std::size_t i = 0; i < finalists; ++i) {
      if (progress_) progress_(candidates_.size(), candidates_.size() + finalists - i);
      auto q = candidates_[i].asked;
      if (candidates_[i].time == std::numeric_limits<double>::infinity()) break;
      const auto& schedules = schedules_on(q);
      std::optional<step_answer> best;
      for (std::size_t k = 0; k < std::min(request_.schedules_tried, schedules.size()); ++k) {
        q.base.schedule = schedules[k].second;
        q.base.by = request_.asked.base.by;
        ++result_.simulated;
        auto a = answer(q, cluster_, model_, known_, step_detail::time_only);
        if (a.feasible && (!best || a.time < best->time)) best = std::move(a);
      }
      if (best) result_.candidates.push_back(std::move(*best));
    }
    std::stable_sort(result_.candidates.begin(), result_.candidates.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }

  [[noreturn]] void refuse() const {
    const ruled_out* nearest = nullptr;
    for (const auto& out : result_.rejected) {
      if (nearest == nullptr || out.reason == "out of memory") nearest = &out;
    }
    throw infeasible(fmt::format(
        "no step of {} on {} ranks: {}", model_.name, ranks_,
        nearest == nullptr
            ? "degrees that are asked for do not divide the ranks"
            : fmt::format(
                  "{} ({} candidates; nearest: {}); feasible: more ranks or shorter sequences",
                  nearest->reason, nearest->candidates, nearest->example)));
  }

  const step_plan_request& request_;
  const cluster& cluster_;
  const step_plan_progress& progress_;
  transformer model_;
  int ranks_;
  known_parts known_;
  std::vector<candidate> candidates_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, ranking> rankings_;
  std::map<std::string, ruled_out> rejected_;
  std::map<std::string, double> nearest_;
  step_plan result_;
};

}  // namespace

step_plan_request exhaustive(step_plan_request r) {
  r.slack = std::numeric_limits<double>::infinity();
  r.finalists = r.schedules_tried = std::numeric_limits<std::size_t>::max();
  return r;
}

step_plan plan(const step_plan_request& r, const cluster& c, const step_plan_progress& progress) {
  if (!r.asked.base.sequence) throw input_error(asked("seq"), "is required");
  if (r.asked.model.empty()) throw input_error(asked("model"), "is required");
  if (!r.asked.global_batch) throw input_error(asked("global-batch"), "is required");
  return search(r, c, progress).take();
}

}  // namespace attnsim::ask
