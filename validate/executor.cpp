#include "validate/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "model/error.hpp"
#include "validate/local_operations.hpp"
#include "validate/start.hpp"

namespace attnsim::validate {
namespace {

using kernels::event_id;
using kernels::stream_id;

/// The axes whose ranks take part; a transpose may join any two.
axis_set members_of(const schedule& s, const operation& op) {
  return op.kind == op_kind::transpose ? only(s.grid.axes()) - 1 : op.axes;
}

bool is_result(pass_kind pass, tensor t) {
  const auto list = results_of(pass);
  return std::find(list.begin(), list.end(), t) != list.end();
}

/// The same rows in more or less room each; what is cut off is room.
blob repacked(const blob& data, std::size_t rows, std::size_t bytes) {
  const auto before = data.size() / rows;
  if (before == bytes) return data;
  blob result(rows * bytes);
  for (std::size_t i = 0; i < rows; ++i) {
    std::memcpy(result.data() + i * bytes, data.data() + i * before, std::min(before, bytes));
  }
  return result;
}

template <typename T>
blob bytes_of(const std::vector<T>& list) {
  blob result(list.size() * sizeof(T));
  if (!list.empty()) std::memcpy(result.data(), list.data(), result.size());
  return result;
}

template <typename T>
std::vector<T> read_as(const blob& data) {
  std::vector<T> list(data.size() / sizeof(T));
  if (!list.empty()) std::memcpy(list.data(), data.data(), data.size());
  return list;
}

}  // namespace

executor::executor(const workload& w, transport& t, kernels::backend& device,
                   local_observer* observer)
    : work_(w),
      transport_(t),
      device_(device),
      observer_(observer),
      clock_offset_(t.clock_offset()) {
  const auto& s = w.program();
  for (std::size_t i = 0; i < s.streams.size(); ++i) {
    const auto priority =
        i == 0 ? kernels::stream_priority::normal : kernels::stream_priority::high;
    streams_.push_back(device.create_stream(priority));
  }
  for (const auto& op : s.program) {
    if (!is_communication(op.kind) || lane_of(op) >= 0) continue;
    const auto axes = members_of(s, op);
    lanes_.emplace_back(op.stream, axes);
    channels_.push_back(t.open(device, streams_[static_cast<std::size_t>(op.stream)],
                               s.grid.group(t.rank(), axes)));
  }
}

int executor::lane_of(const operation& op) const {
  const std::pair wanted{op.stream, members_of(work_.program(), op)};
  const auto found = std::find(lanes_.begin(), lanes_.end(), wanted);
  return found == lanes_.end() ? -1 : static_cast<int>(found - lanes_.begin());
}

/// One run of the program.
class executor::pass {
 public:
  pass(executor& e, launch_mode mode, std::map<int, std::byte*> given = {})
      : e_(e),
        program_(e.work_.program().program),
        mode_(mode),
        memory_(e.work_, e.device_, awaiting(mode), std::move(given)),
        local_(e.work_, e.transport_.rank(), e.device_, memory_),
        of_stream_(e.streams_.size()) {}

  ~pass() {
    for (const auto stream : e_.streams_) {
      try {
        e_.device_.synchronize(stream);
      } catch (...) {  // what the run failed of is on its way already
      }
    }
    release_events();
    if (origin_) e_.device_.release(*origin_);
    if (graph_) e_.device_.release(*graph_);
  }

  execution run(const shard_source& input) {
    for (const auto& o : inputs_of(program())) load(o, input, e_.work_.tokens(rank(), o));
    for (const auto& o : e_.work_.caches()) load(o, input, e_.work_.cached_tokens(rank(), o));
    execution result{.times = run_timed(), .peak_memory = memory_.peak()};
    result.results = results();
    return result;
  }

  void enqueue(stream_id on) {
    release_events();
    for (const auto own : e_.streams_) tie(on, own);
    launch_operations();
    for (const auto own : e_.streams_) tie(own, on);
  }

  const local_operations& local() const { return local_; }

  timeline time(const std::byte* input) {
    for (const auto& o : inputs_of(program())) copy_in(o, input, bytes(o));
    for (const auto& o : e_.work_.caches()) copy_in(o, input, cached_bytes(o));
    return run_timed();
  }

 private:
  stream_id stream(int i) const { return e_.streams_[static_cast<std::size_t>(i)]; }
  const schedule& program() const { return e_.work_.program(); }
  int rank() const { return e_.transport_.rank(); }

  std::function<void(std::size_t)> awaiting(launch_mode mode) {
    if (mode != launch_mode::counted) return nullptr;
    return [this](std::size_t op) { e_.device_.seconds_between(*origin_, spans_.at(op).second); };
  }

  timeline run_timed() {
    if (mode_ == launch_mode::graph) capture();
    late_ = start_together(e_.transport_, e_.clock_offset_);
    origin_ = e_.device_.record(stream(0));
    graph_ ? launch_graph() : launch_operations();
    for (const auto stream : e_.streams_) e_.device_.synchronize(stream);
    return gathered_times();
  }

  void load(const operand& o, const shard_source& input, const token_set& tokens) {
    if (tokens.empty()) return;
    const auto heads = e_.work_.heads(rank(), program().buffer_of(o).heads, 0, o.part);
    const auto own = input(o.what, tokens, heads, local_.type(o));
    const auto rows = static_cast<std::size_t>(size(tokens) * e_.work_.problem().batch);
    const auto bytes = rows * row_bytes(o, head_count(o.what, heads));
    if (own.data.size() != bytes) {
      throw std::invalid_argument(fmt::format("input {} has {} bytes, expected {}", name_of(o.what),
                                              own.data.size(), bytes));
    }
    copy_in(o, repacked(own.data, rows, slot_bytes(o)).data(), rows * slot_bytes(o));
  }

  void copy_in(const operand& o, const std::byte* data, std::size_t size) {
    e_.device_.copy(stream(0), local_.address(o), data, size);
    e_.device_.synchronize(stream(0));
  }

  std::size_t bytes(const operand& o) const {
    return static_cast<std::size_t>(e_.work_.bytes(o).value());
  }
  /// Of the prefix in a share of heads, before what an exchange adds.
  std::size_t cached_bytes(const operand& o) const {
    const auto& b = program().buffer_of(o);
    if (b.heads != head_form::share || !is_key_side(o.what)) return 0;
    return static_cast<std::size_t>(e_.work_.cached_tokens(b.heads) *
                                    e_.work_.token_bytes(o.what, b.format, b.heads));
  }

  std::size_t token_rows(const operand& o) const {
    return static_cast<std::size_t>(size(e_.work_.tokens(rank(), o)) * e_.work_.problem().batch);
  }
  std::size_t row_bytes(const operand& o, std::int64_t heads) const {
    const auto elements = head_elements(e_.work_.problem(), o.what);
    return static_cast<std::size_t>(heads * elements * element_bytes(local_.type(o)));
  }
  /// Of a row in a slot, with room for the largest share of the heads.
  std::size_t slot_bytes(const operand& o) const {
    return row_bytes(o, e_.work_.heads_of_slot(o.what, program().buffer_of(o).heads));
  }

  void tie(stream_id from, stream_id to) {
    const auto event = e_.device_.record(from);
    e_.device_.wait(to, event);
    ties_.push_back(event);
  }

  void release_events() {
    for (const auto& [begin, end] : spans_) {
      e_.device_.release(begin);
      e_.device_.release(end);
    }
    for (const auto tie : ties_) e_.device_.release(tie);
    spans_.clear();
    ties_.clear();
    for (auto& list : of_stream_) list.clear();
  }

  /// Streams leave the first one and come back to it.
  void capture() {
    e_.device_.begin_capture(stream(0));
    for (const auto other : e_.streams_) {
      if (other != stream(0)) tie(stream(0), other);
    }
    launch_operations();
    for (const auto other : e_.streams_) {
      if (other != stream(0)) tie(other, stream(0));
    }
    graph_ = e_.device_.end_capture(stream(0));
  }

  void launch_graph() {
    e_.device_.launch(stream(0), *graph_);
    e_.transport_.watch(e_.device_, stream(0), "graph of " + program().name);
  }

  void launch_operations() {
    for (std::size_t op = 0; op < program_.size(); ++op) launch(op);
  }

  void launch(std::size_t op) {
    const auto& o = program_[op];
    const auto on = stream(o.stream);
    memory_.enter(op);
    for (std::size_t other = 0; other < o.needs.size(); ++other) {
      if (o.needs[other] == 0) continue;
      e_.device_.wait(on, spans_[of_stream_[other].at(o.needs[other] - 1)].second);
    }
    const auto begin = e_.device_.record(on);
    is_communication(o.kind) ? communicate(op) : compute(op);
    spans_.emplace_back(begin, e_.device_.record(on));
    of_stream_[static_cast<std::size_t>(o.stream)].push_back(op);
    memory_.leave(op);
  }

  void compute(std::size_t op) {
    const auto on = stream(program_[op].stream);
    if (e_.observer_) e_.observer_->begin(on, op);
    local_.enqueue(on, op);
    if (e_.observer_) e_.observer_->end(on, op);
  }

  void communicate(std::size_t op) {
    const auto& o = program_[op];
    const auto axes = members_of(program(), o);
    const auto slots = o.kind == op_kind::reduce_scatter || o.kind == op_kind::all_to_all
                           ? program().grid.extent_of(axes)
                           : 1;
    std::vector<payload> parts;
    for (std::size_t i = 0; i < o.reads.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(e_.work_.bytes(o.reads[i]).value() / slots);
      const auto& into = o.writes.at(i);
      const auto before = o.axes == program().head_axis ? cached_bytes(into) : 0;
      parts.push_back({local_.address(o.reads[i]), local_.address(into) + before, bytes,
                       local_.type(o.reads[i])});
    }
    const bool alone = is_collective(o.kind) ? program().grid.extent_of(axes) == 1
                                             : program().send_peer(o, rank()) == rank();
    alone ? keep(o, parts) : send(op, axes, parts);
  }

  void keep(const operation& o, const std::vector<payload>& parts) {
    for (const auto& p : parts) e_.device_.copy(stream(o.stream), p.to, p.from, p.slot_bytes);
  }

  void send(std::size_t op, axis_set axes, const std::vector<payload>& parts) {
    const auto& o = program_[op];
    auto& through = *e_.channels_[static_cast<std::size_t>(e_.lane_of(o))];
    const auto what = fmt::format("operation {} ({})", op, name_of(o.kind));
    const auto place = [&](int peer) { return program().grid.place_in_group(peer, axes); };
    switch (o.kind) {
      case op_kind::all_gather:
        return through.all_gather(what, parts);
      case op_kind::reduce_scatter:
        return through.reduce_scatter(what, parts);
      case op_kind::all_to_all:
        return through.all_to_all(what, parts);
      default:
        return through.send_receive(what, place(program().send_peer(o, rank())),
                                    place(program().receive_peer(o, rank())), parts);
    }
  }

  rank_timeline own_times() const {
    rank_timeline own{.rank = rank()};
    for (std::size_t op = 0; op < spans_.size(); ++op) {
      const auto since_start = [&](event_id e) {
        return seconds(late_ + e_.device_.seconds_between(*origin_, e));
      };
      const interval span{static_cast<std::uint32_t>(op), since_start(spans_[op].first),
                          since_start(spans_[op].second)};
      own.end = std::max(own.end, span.end);
      if (program_[op].stream == 0) own.compute += span.end - span.start;
      own.intervals.push_back(span);
    }
    std::stable_sort(own.intervals.begin(), own.intervals.end(),
                     [](const auto& a, const auto& b) { return a.end < b.end; });
    return own;
  }

  timeline gathered_times() const {
    const auto own = own_times();
    const auto totals = e_.transport_.share(bytes_of(std::vector{own.end, own.compute}));
    const auto spans = e_.transport_.share(bytes_of(own.intervals));
    timeline all;
    for (int r = 0; r < e_.transport_.ranks(); ++r) {
      const auto total = read_as<seconds>(totals[static_cast<std::size_t>(r)]);
      all.ranks.push_back(
          {r, total.at(0), total.at(1), read_as<interval>(spans[static_cast<std::size_t>(r)])});
      all.class_of.push_back(r);
    }
    return all;
  }

  std::vector<shard> results() {
    std::vector<shard> list;
    std::vector<bool> read(program().buffers.size());
    for (auto op = program_.rbegin(); op != program_.rend(); ++op) {
      for (const auto& o : op->writes) {
        const auto b = static_cast<std::size_t>(o.buffer);
        if (!program().buffers[b].resident || !is_result(program().pass, o.what) || read[b])
          continue;
        read[b] = true;
        blob data(static_cast<std::size_t>(e_.work_.bytes(o).value()));
        e_.device_.copy(stream(0), data.data(), local_.address(o), data.size());
        e_.device_.synchronize(stream(0));
        const auto heads = e_.work_.heads(rank(), program().buffer_of(o).heads, 0, o.part);
        list.push_back({o.what, e_.work_.tokens(rank(), o), heads, local_.type(o),
                        repacked(data, token_rows(o), row_bytes(o, head_count(o.what, heads)))});
      }
    }
    return list;
  }

  executor& e_;
  const std::vector<operation>& program_;
  launch_mode mode_;
  std::optional<event_id> origin_;
  std::optional<kernels::graph_id> graph_;
  std::vector<event_id> ties_;                        ///< of streams, in a graph
  std::vector<std::pair<event_id, event_id>> spans_;  ///< by operation
  double late_ = 0;  ///< from the agreed start to origin_, in seconds
  device_memory memory_;
  local_operations local_;
  std::vector<std::vector<std::size_t>> of_stream_;
};

execution executor::run(const shard_source& input, launch_mode mode) {
  return pass(*this, mode).run(input);
}

timeline executor::time(const void* input, launch_mode mode) {
  return pass(*this, mode).time(static_cast<const std::byte*>(input));
}

// --- Among other work -----------------------------------------------------------------------------

enqueued_pass::enqueued_pass(executor& e, const enqueued_pass* before)
    : executor_(e), tokens_(e.work_.home_tokens(e.transport_.rank(), token_side::queries)) {
  const auto& s = e.work_.program();
  if (!e.work_.caches().empty() || s.parts > 1)
    throw infeasible(s.name + " in a layer: expected no prefix and heads in one part");
  std::map<int, std::byte*> left;
  for (const auto& o : inputs_of(s)) {
    auto* data = before ? before->address_like(s, o) : nullptr;
    data ? (void)left.emplace(o.buffer, data) : take(o);
  }
  for (const auto& op : s.program) {
    for (const auto& o : op.writes) {
      if (s.buffer_of(o).resident && is_result(s.pass, o.what) && is_own_shard(o)) take(o);
    }
  }
  pass_ = std::make_unique<executor::pass>(e, launch_mode::ahead, std::move(left));
}

enqueued_pass::~enqueued_pass() = default;

bool enqueued_pass::is_own_shard(const operand& o) const {
  const auto& w = executor_.work_;
  const int rank = executor_.transport_.rank();
  const auto form = w.program().buffer_of(o).heads;
  return form == head_form::all && joined(w.tokens(rank, o)) == joined(tokens_) &&
         w.heads_of_slot(o.what, form) == head_count(o.what, w.heads(rank, form));
}

void enqueued_pass::take(const operand& o) {
  if (!is_own_shard(o))
    throw infeasible(fmt::format("{} in a layer: {} is not of the rank's own tokens and heads",
                                 executor_.work_.program().name, name_of(o.what)));
  own_.insert_or_assign(o.what, o);
}

std::byte* enqueued_pass::address_like(const schedule& other, const operand& wanted) const {
  const auto& s = executor_.work_.program();
  const auto& b = other.buffer_of(wanted);
  for (const auto& op : s.program) {
    for (const auto* list : {&op.writes, &op.reads}) {
      for (const auto& o : *list) {
        const auto& mine = s.buffer_of(o);
        if (mine.resident && o.what == wanted.what && mine.heads == b.heads &&
            mine.format == b.format && o.at == wanted.at)
          return pass_->local().address(o);
      }
    }
  }
  return nullptr;
}

kernels::token_shape enqueued_pass::shape(tensor what) const {
  const auto& w = executor_.work_;
  const auto heads = w.heads(executor_.transport_.rank(), head_form::all);
  return shape_of(w.problem(), what, head_count(what, heads), size(tokens_));
}

kernels::device_tensor enqueued_pass::at(tensor what) const {
  const auto& o = own_.at(what);
  return placed(pass_->local().address(o), pass_->local().type(o), shape(what));
}

void enqueued_pass::enqueue(stream_id on) {
  pass_->enqueue(on);
}

}  // namespace attnsim::validate
