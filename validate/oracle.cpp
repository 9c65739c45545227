#include "validate/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include "kernels/cpu/parallel.hpp"
#include "kernels/with_type.hpp"
#include "validate/made_numbers.hpp"

namespace attnsim::validate {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double worse(double a, double b) {
  return a > b || std::isnan(a) ? a : b;
}

/// Calls f(place, batch, token, head, d) for every element of a shard, each thread for other tokens.
template <typename F>
void for_each_element(const attention& a, const shard& s, unsigned threads, const F& f) {
  const auto shape = shape_of(a, s.what, head_count(s.what, s.heads), size(s.tokens));
  const auto first = first_head(s.what, s.heads);
  std::int64_t before = 0;
  for (const auto& range : s.tokens) {
    kernels::cpu::parallel_for(range.count, static_cast<int>(threads), [&](std::int64_t i) {
      auto place =
          static_cast<std::size_t>((before + i) * shape.batch * shape.heads * shape.head_dim);
      for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
        for (std::int64_t head = 0; head < shape.heads; ++head) {
          for (std::int64_t d = 0; d < shape.head_dim; ++d) {
            f(place++, batch, range.first + i * range.stride, first + head, d);
          }
        }
      }
    });
    before += range.count;
  }
}

void store(data_type type, std::byte* data, std::size_t place, double value) {
  kernels::with_type(type, [&]<typename T>(std::type_identity<T>) {
    const T element(static_cast<float>(value));
    std::memcpy(data + place * sizeof(T), &element, sizeof(T));
  });
}

double load(data_type type, const std::byte* data, std::size_t place) {
  return kernels::with_type(type, [&]<typename T>(std::type_identity<T>) -> double {
    T element;
    std::memcpy(&element, data + place * sizeof(T), sizeof(T));
    return float{element};
  });
}

/// Rounding to e4m3 is off by 3.6 % (2^-4 / sqrt 3) at most, as a root mean square. Probabilities in fp8 are rounded once, and
/// their errors reach the output as they are, as values of both signs add up like errors. Where inputs are rounded too, scores
/// of a variance of 1 are off by as much from each side, and values themselves: the root of four such squares. So they are where
/// keys and values are made of latents that may have travelled. A gradient is a product of dO or of dS, both rounded, with
/// probabilities, keys or queries: of a scaled dO, of dP with it in dS, and of dS or P, three squares; the rounding of inputs adds
/// three, of both sides of the scores and of what dP or the gradient reads.
double tolerance_of(const attention& a, pass_kind pass) {
  const bool rounds_inputs = a.wire_dtype.value_or(a.dtype) != home_type(a) ||
                             home_type(a) != a.dtype || a.latent_rank > 0;
  const bool has_fp8 = a.dtype == data_type::fp8 || a.wire_dtype == data_type::fp8;
  if (a.dtype == data_type::fp8 && pass == pass_kind::backward)
    return rounds_inputs ? 9e-2 : 6.5e-2;
  if (has_fp8) return rounds_inputs ? 7.5e-2 : 4e-2;
  const bool all_fp32 = a.dtype == data_type::fp32 && a.wire_dtype.value_or(a.dtype) == a.dtype;
  return all_fp32 ? 1e-5 : 1e-2;
}

/// All rows where that is affordable, else evenly spaced ones.
std::vector<std::int64_t> sampled_rows(const attention& a, double most_work) {
  constexpr std::int64_t least = 8;
  const auto tokens = a.sequence - a.padding;
  const auto keys = document_bounds(a, token_side::keys).back();
  const double work_of_row = 2.0 *
                             static_cast<double>(a.batch * a.heads * (a.head_dim + a.value_dim())) *
                             static_cast<double>(keys);
  const auto affordable = static_cast<std::int64_t>(most_work / work_of_row);
  const auto count = std::min(tokens, std::max(least, affordable));
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i)
    rows.push_back(a.prefix + (2 * i + 1) * tokens / (2 * count));
  return rows;
}

}  // namespace

void tensor_error::add(const tensor_error& other) {
  max_error = worse(max_error, other.max_error);
  max_reference = worse(max_reference, other.max_reference);
  square_error += other.square_error;
  square_reference += other.square_reference;
}

double tensor_error::relative() const {
  return std::sqrt(square_reference > 0 ? square_error / square_reference : square_error);
}

oracle::oracle(const attention& a, double most_work)
    : problem_(a),
      query_end_(document_bounds(a, token_side::queries).back()),
      key_end_(document_bounds(a, token_side::keys).back()),
      rows_(sampled_rows(a, most_work)) {
  for (std::int64_t t = 0; t < end(tensor::k); ++t) columns_.push_back(t);
}

std::int64_t oracle::end(tensor what) const {
  return side_of(what) == token_side::keys ? key_end_ : query_end_;
}

std::int64_t oracle::row_of(std::int64_t token) const {
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), token);
  return found != rows_.end() && *found == token ? found - rows_.begin() : -1;
}

/// Queries are larger, so that scores differ by a few units and every key weighs differently.
double oracle::input(tensor what, std::int64_t batch, std::int64_t token, std::int64_t head,
                     std::int64_t d) const {
  if (what == tensor::sinks) return sink_of(head);
  if (what == tensor::v && problem_.latent) what = tensor::k;
  if (token >= end(what) - (is_key_side(what) ? shorter(batch) : 0)) return not_a_number;
  if (what == tensor::d_o && row_of(token) < 0) return 0;
  if (what == tensor::expansion) return expansion(head, d);
  const bool made = problem_.latent_rank > 0 && (what == tensor::k || what == tensor::v);
  if (made) return expanded(what, batch, token, head, d);
  const auto positions = std::max(problem_.sequence, problem_.tokens(token_side::keys));
  const auto index =
      ((batch * positions + token) * problem_.heads + head) * head_elements(problem_, what) + d;
  const double value =
      mixed(static_cast<std::uint64_t>(index) * 16 + static_cast<std::uint64_t>(what));
  return rounded(what == tensor::q ? 3 * value : value,
                 is_input(what) ? home_type(problem_) : result_type(problem_.dtype));
}

/// [rank][head_dim - rotary + v_head_dim] of each head; products of as many as the latent's elements vary like other inputs.
double oracle::expansion(std::int64_t head, std::int64_t d) const {
  const auto index = head * head_elements(problem_, tensor::expansion) + d;
  const double size = std::sqrt(3 / static_cast<double>(problem_.latent_rank));
  const auto seed =
      static_cast<std::uint64_t>(index) * 16 + static_cast<std::uint64_t>(tensor::expansion);
  return rounded(size * mixed(seed), result_type(problem_.dtype));
}

double oracle::expanded(tensor what, std::int64_t batch, std::int64_t token, std::int64_t head,
                        std::int64_t d) const {
  const auto made = problem_.head_dim - problem_.rotary, width = made + problem_.value_dim();
  const auto of_latent = [&](std::int64_t i) { return input(tensor::latent, batch, token, 0, i); };
  const bool rotary = what == tensor::k && d >= made;
  double sum = rotary ? of_latent(problem_.latent_rank + d - made) : 0;
  const auto column = what == tensor::k ? d : made + d;
  for (std::int64_t r = 0; r < problem_.latent_rank && !rotary; ++r)
    sum += of_latent(r) * expansion(head, r * width + column);
  return rounded(sum, home_type(problem_));
}

std::int64_t oracle::shorter(std::int64_t batch) const {
  if (problem_.prefixes.empty()) return 0;
  return problem_.prefix - problem_.prefixes[static_cast<std::size_t>(batch)];
}

double oracle::sink_of(std::int64_t head) const {
  return rounded(
      2 * mixed(static_cast<std::uint64_t>(head) * 16 + static_cast<std::uint64_t>(tensor::sinks)),
      data_type::fp32);
}

std::vector<double> oracle::inputs(tensor what, const std::vector<std::int64_t>& tokens) const {
  const auto shape = shape_of(problem_, what, head_count(what, all_heads(problem_)), 0);
  std::vector<double> values;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (const auto token : tokens) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        for (std::int64_t d = 0; d < shape.head_dim; ++d) {
          values.push_back(input(what, batch, token, head, d));
        }
      }
    }
  }
  return values;
}

kernels::cpu::reference_attention oracle::sampled() const {
  std::vector<double> sinks;
  for (std::int64_t head = 0; problem_.sinks && head < problem_.heads; ++head)
    sinks.push_back(sink_of(head));
  std::vector<std::int64_t> shorter_by;
  for (std::int64_t batch = 0; !problem_.prefixes.empty() && batch < problem_.batch; ++batch)
    shorter_by.push_back(shorter(batch));
  return {.batch = problem_.batch,
          .heads = problem_.heads,
          .kv_heads = problem_.kv_heads,
          .head_dim = problem_.head_dim,
          .v_head_dim = problem_.v_head_dim,
          .query_positions = rows_,
          .key_positions = columns_,
          .causal = problem_.mask == mask_kind::causal,
          .window = problem_.window,
          .kept_first = problem_.kept_first,
          .sinks = std::move(sinks),
          .document_ends =
              problem_.documents.empty() ? std::vector<std::int64_t>{} : document_bounds(problem_),
          .shorter = std::move(shorter_by)};
}

const std::vector<double>& oracle::reference(tensor what) const {
  const auto q = [&] { return inputs(tensor::q, rows_); };
  const auto k = [&] { return inputs(tensor::k, columns_); };
  const auto v = [&] { return inputs(tensor::v, columns_); };
  if (what == tensor::o || what == tensor::lse) {
    std::call_once(forward_once_, [&] { forward_ = reference_forward(sampled(), q(), k(), v()); });
    return what == tensor::o ? forward_.output : forward_.lse;
  }
  std::call_once(backward_once_, [&] {
    backward_ = reference_backward(sampled(), q(), k(), v(), inputs(tensor::d_o, rows_));
  });
  return what == tensor::d_q   ? backward_.query
         : what == tensor::d_k ? backward_.key
                               : backward_.value;
}

/// Nothing where the sample has no answer.
std::optional<double> oracle::expected(tensor what, std::int64_t batch, std::int64_t token,
                                       std::int64_t head, std::int64_t d) const {
  if (token >= end(what)) return {};
  const bool cols = is_key_side(what);
  const auto row = cols ? token : row_of(token);
  if (row < 0) return what == tensor::d_q ? std::optional(0.0) : std::nullopt;
  const auto count = static_cast<std::int64_t>(cols ? columns_.size() : rows_.size());
  const auto shape = shape_of(problem_, what, head_count(what, all_heads(problem_)), count);
  const auto index = ((batch * count + row) * shape.heads + head) * shape.head_dim + d;
  return reference(what)[static_cast<std::size_t>(index)];
}

shard oracle::make(tensor what, const token_set& tokens, data_type type) const {
  return make(what, tokens, all_heads(problem_), type);
}

shard oracle::make(tensor what, const token_set& tokens, const head_range& heads,
                   data_type type) const {
  const bool computed = what == tensor::o || what == tensor::lse;
  if (computed && samples()) throw std::logic_error("a sample does not give all of o and lse");
  const double hidden = what == tensor::lse ? -std::numeric_limits<double>::infinity() : 0;
  shard made{what, tokens, heads, type, {}};
  const auto shape = shape_of(problem_, what, head_count(what, heads), size(tokens));
  made.data.resize(static_cast<std::size_t>(shape.batch * shape.tokens * shape.heads *
                                            shape.head_dim * element_bytes(type)));
  constexpr std::size_t worth_threads = std::size_t{1} << 20;  // bytes
  for_each_element(problem_, made,
                   made.data.size() < worth_threads ? 1 : std::thread::hardware_concurrency(),
                   [&](std::size_t place, auto... element) {
                     const double value = computed ? expected(what, element...).value_or(hidden)
                                                   : input(what, element...);
                     store(type, made.data.data(), place, value);
                   });
  return made;
}

shard_source oracle::source() const {
  return [this](tensor what, const token_set& tokens, const head_range& heads, data_type type) {
    return make(what, tokens, heads, type);
  };
}

tensor_error oracle::compare(const shard& result) const {
  tensor_error error{.what = result.what};
  for_each_element(problem_, result, 1, [&](std::size_t place, auto... element) {
    const auto wanted = expected(result.what, element...);
    if (!wanted) return;
    const double off = std::abs(load(result.type, result.data.data(), place) - *wanted);
    error.add({result.what, off, std::abs(*wanted), off * off, *wanted * *wanted});
  });
  return error;
}

std::vector<tensor_error> oracle::compare(const std::vector<shard>& results) const {
  std::vector<tensor_error> errors;
  for (const auto& r : results) errors.push_back(compare(r));
  return errors;
}

numerics oracle::judge(pass_kind pass, const std::vector<tensor_error>& parts) const {
  numerics n{.tolerance = tolerance_of(problem_, pass), .passed = true};
  for (const auto what : results_of(pass)) {
    tensor_error whole{.what = what};
    bool present = false;
    for (const auto& p : parts) {
      if (p.what != what) continue;
      whole.add(p);
      present = true;
    }
    const double most = 10 * n.tolerance * std::max(whole.max_reference, 1.0);
    n.passed = n.passed && present && whole.relative() <= n.tolerance && whole.max_error <= most;
    n.max_error = worse(n.max_error, whole.max_error);
    n.relative_error = worse(n.relative_error, whole.relative());
  }
  return n;
}

}  // namespace attnsim::validate
