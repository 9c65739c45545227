#include "model/cost/local.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/cost/matmul.hpp"

namespace attnsim {
namespace {

constexpr int variants = 3;  // of workload::tile_variant

/// What decides an operation's cost besides the tile variant: the sizes of its operands and what it accumulates into.
using cost_form = std::tuple<op_kind, std::vector<std::pair<int, int>>, std::size_t>;

cost_form form_of(const schedule& s, const operation& op) {
  std::vector<std::pair<int, int>> sizes;
  for (const auto* list : {&op.reads, &op.writes}) {
    for (const auto& o : *list) {
      const auto& b = s.buffer_of(o);
      const int kind = static_cast<int>(o.what) * 4 + static_cast<int>(b.heads);
      const int format = static_cast<int>(b.format) * 2 + (o.at.ascending ? 1 : 0);
      sizes.emplace_back(kind * 32 + (b.kept ? 16 : b.tail ? 8 : 0) + format, s.slot_count(o));
    }
  }
  return {op.kind, std::move(sizes), op.reads.size()};
}

/// What brings the results of packed documents to their place: of all in one call, as their kernel was.
void add_to_one_call(memory_calls& all, const memory_calls& of_one, std::int64_t times) {
  all.traffic += of_one.traffic * times;
  all.count = std::max(all.count, of_one.count);
  all.additions = std::max(all.additions, of_one.additions);
}

/// One call of a variable-length kernel: all tiles run in parallel, each with its own loop, on average as long as theirs.
void set_to_mean_loop(kernel_call& call, const std::vector<tile>& tiles) {
  std::int64_t area = 0;
  call.rows = call.cols = call.pairs = 0;
  for (const auto& t : tiles) {
    area += t.times * t.rows * t.cols;
    call.rows += t.times * t.rows;
    call.cols += t.times * t.cols;
    call.pairs += t.times * t.pairs();
  }
  auto& loop = call.pass == pass_kind::forward ? call.cols : call.rows;
  const auto parallel = call.pass == pass_kind::forward ? call.rows : call.cols;
  loop = (area + parallel - 1) / parallel;
}

/// One call of a batch whose sequences have different lengths: of all their keys, which it splits as if all were of the mean length.
void set_to_mean_request(kernel_call& call, const std::vector<tile>& tiles) {
  std::int64_t requests = 0, latest = -1;
  call.rows = call.cols = call.pairs = 0;
  for (const auto& t : tiles) {
    if (t.request != latest) requests += t.times;
    latest = t.request;
    call.rows = std::max(call.rows, t.rows);
    call.cols += t.times * t.cols;
    call.pairs += t.times * t.pairs();
  }
  call.batch = requests;
  call.pairs_of_batch = call.pairs;
  call.cols = (call.cols + requests - 1) / requests;
  call.pairs = std::min((call.pairs + requests - 1) / requests, call.rows * call.cols);
}

}  // namespace

local_costs::local_costs(const workload& w, const device_profile& device,
                         const kernel_profile* kernel, run_start start, double copy_rate)
    : workload_(w), device_(device), kernel_(kernel), start_(start), copy_rate_(copy_rate) {
  std::map<cost_form, std::size_t> forms;
  for (const auto& op : w.program().program) {
    form_.push_back(forms.try_emplace(form_of(w.program(), op), forms.size()).first->second);
  }
  known_.resize(forms.size() * variants);
  constexpr std::size_t most_places = std::size_t{1} << 18;
  const auto places = w.program().program.size() * static_cast<std::size_t>(w.ranks());
  if (places <= most_places) found_.resize(places);
}

/// The product, and the rotary elements beside it, which go to every head.
seconds local_costs::expansion_time(const operation& op, int rank) const {
  const auto& a = workload_.problem();
  const auto& k = attnsim::find(op.writes, tensor::k);
  const auto tokens = a.batch * workload_.program().slot_count(k) * workload_.slot_tokens(k);
  const auto heads = workload_.heads(rank, workload_.program().buffer_of(k).heads, 0, k.part).keys;
  const auto width = a.head_dim - a.rotary + a.value_dim();
  const auto product = product_time(device_,
                                    {.rows = static_cast<double>(tokens),
                                     .cols = static_cast<double>(heads * width),
                                     .inner = static_cast<double>(a.latent_rank)},
                                    product_type::half);
  const byte_count copied(tokens * heads * a.rotary *
                          element_bytes(number_type(a, tensor::k, precision::storage)));
  return a.rotary > 0 ? product + device_.memory_time(copied) : product;
}

local_costs::cost local_costs::attention_cost(const operation& op, int rank) const {
  const auto& a = workload_.problem();
  const auto form = workload_.program().buffer_of(op.reads.front()).heads;
  const auto heads = workload_.heads(rank, form);
  const auto pass = op.kind == op_kind::attention ? pass_kind::forward : pass_kind::backward;
  kernel_call call{.pass = pass,
                   .batch = a.batch,
                   .heads = heads.queries,
                   .kv_heads = heads.keys,
                   .head_dim = a.head_dim,
                   .v_head_dim = a.v_head_dim,
                   .latent = a.latent,
                   .dtype = a.dtype};
  const auto tiles = workload_.counted_tiles(op, rank, blocks_);
  cost total{.known = true};
  const auto add_calls = [&](std::int64_t times, std::int64_t requests = 1) {
    const auto n = static_cast<double>(times);
    total.time += n * kernel_time(device_, kernel_, call, start_);
    total.flops += n * operations(call);
    if (call.pairs == 0) return;
    total.parts += n * kernel_parts(device_, kernel_, call);
    total.calls += static_cast<int>(times);
    total.launches += n * call_launch(kernel_, call, requests);
    total.uncertainty = std::max(total.uncertainty, kernel_uncertainty(device_, kernel_, call));
  };
  const auto add_memory = [&](const memory_calls& use, std::int64_t times) {
    if (use.count > 0)
      total.time += static_cast<double>(times) * device_.memory_time(use.traffic, use.count);
    total.memory.traffic += times * use.traffic;
    total.memory.count += static_cast<int>(times) * use.count;
    total.memory.additions += static_cast<int>(times) * use.additions;
  };
  if (!a.prefixes.empty() && !tiles.empty()) {
    memory_calls use;
    for (const auto& t : tiles) {
      auto of_one = workload_.accumulation_of(op, t);
      of_one.traffic = of_one.traffic / a.batch;
      add_to_one_call(use, of_one, t.times);
    }
    add_memory(use, 1);
    set_to_mean_request(call, tiles);
    add_calls(1, call.batch);
    return total;
  }
  if (!a.documents.empty() && !tiles.empty()) {
    memory_calls use;
    for (const auto& t : tiles) add_to_one_call(use, workload_.accumulation_of(op, t), t.times);
    add_memory(use, 1);
    set_to_mean_loop(call, tiles);
    add_calls(1);
    return total;
  }
  for (const auto& t : tiles) {
    add_memory(workload_.accumulation_of(op, t), t.times);
    call.rows = t.rows;
    call.cols = t.cols;
    call.pairs = t.pairs();
    add_calls(t.times);
  }
  return total;
}

local_costs::cost local_costs::cost_of(const operation& op, int rank) const {
  if (is_kernel(op.kind)) return attention_cost(op, rank);
  cost c{.known = true};
  if (is_communication(op.kind)) return c;
  if (op.kind == op_kind::expand) {
    c.time = expansion_time(op, rank);
    return c;
  }
  c.memory = workload_.memory_calls_of(op);
  if (op.kind == op_kind::delta)
    c.time = device_.delta_time(c.memory.traffic);
  else if (copy_rate_ < 1 && op.kind == op_kind::copy && !changes_format(workload_.program(), op))
    c.time = device_.slow_copy_time(c.memory.traffic, c.memory.count, copy_rate_);
  else
    c.time = device_.memory_time(c.memory.traffic, c.memory.count);
  return c;
}

const local_costs::cost& local_costs::of_rank(std::size_t index, int rank) const {
  const auto& op = workload_.program().program[index];
  if (!has_room_for(index)) {
    const bool again = std::exchange(latest_of_, {index, rank}) == std::pair(index, rank);
    if (!again || !latest_.known) latest_ = cost_of(op, rank);
    return latest_;
  }
  auto& numbers = by_rank_[index];
  numbers.resize(static_cast<std::size_t>(workload_.ranks()));
  auto& number = numbers[static_cast<std::size_t>(rank)];
  if (number == 0) number = number_of(cost_of(op, rank));
  return numbered_[number - 1];
}

bool local_costs::has_room_for(std::size_t index) const {
  constexpr std::size_t most_places = std::size_t{1} << 24;
  return by_rank_.contains(index) ||
         (by_rank_.size() + 1) * static_cast<std::size_t>(workload_.ranks()) <= most_places;
}

std::uint32_t local_costs::number_of(const cost& c) const {
  if (numbered_.empty() || numbered_.back() != c) numbered_.push_back(c);
  return static_cast<std::uint32_t>(numbered_.size());
}

void local_costs::find_on_all_ranks(std::size_t index, const number_loop& loop) const {
  constexpr int many = 4096, of_body = 256;
  const auto& op = workload_.program().program[index];
  const int ranks = workload_.ranks();
  if (ranks < many || !is_kernel(op.kind) || workload_.tile_variant(op, 0) >= 0) return;
  if (by_rank_.contains(index) || !has_room_for(index)) return;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!workload_.look_at_blocks(op, rank, blocks_)) return;
  }
  auto& numbers = by_rank_[index];
  numbers.resize(static_cast<std::size_t>(ranks));
  const auto has_its_own = [&](int rank) { return workload_.first_alike(op, rank) == rank; };
  std::vector<cost> costs(many);  // so many at a time: all of them take too much memory
  for (int first = 0; first < ranks; first += many) {
    loop(many / of_body, [&](std::size_t body) {
      const int from = first + static_cast<int>(body) * of_body;
      for (int rank = from; rank < std::min(from + of_body, ranks); ++rank) {
        if (has_its_own(rank)) costs[static_cast<std::size_t>(rank - first)] = cost_of(op, rank);
      }
    });
    for (int rank = first; rank < std::min(first + many, ranks); ++rank) {
      if (has_its_own(rank))
        numbers[static_cast<std::size_t>(rank)] =
            number_of(costs[static_cast<std::size_t>(rank - first)]);
    }
  }
}

const local_costs::cost& local_costs::find(std::size_t index, int rank) const {
  if (found_.empty()) return look_up(index, rank);
  const auto ranks = static_cast<std::size_t>(workload_.ranks());
  auto& found = found_[index * ranks + static_cast<std::size_t>(rank)];
  if (found == nullptr) found = &look_up(index, rank);
  return *found;
}

const local_costs::cost& local_costs::look_up(std::size_t index, int rank) const {
  const auto& op = workload_.program().program[index];
  const int variant = is_kernel(op.kind) ? workload_.tile_variant(op, rank) : 0;
  if (variant < 0) return of_rank(index, workload_.first_alike(op, rank));
  auto& slot = known_[form_[index] * variants + static_cast<std::size_t>(variant)];
  if (!slot.known) slot = cost_of(op, rank);
  return slot;
}

seconds local_costs::time(std::size_t op, int rank) const {
  return find(op, rank).time;
}

seconds local_costs::longest_stream(int rank) const {
  const auto& program = workload_.program();
  std::vector<seconds> of_stream(program.streams.size());
  for (std::size_t op = 0; op < program.program.size(); ++op)
    of_stream[static_cast<std::size_t>(program.program[op].stream)] += time(op, rank);
  return *std::max_element(of_stream.begin(), of_stream.end());
}

}  // namespace attnsim
