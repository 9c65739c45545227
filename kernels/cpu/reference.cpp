#include "kernels/cpu/reference.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace attnsim::kernels::cpu {
namespace {

using std::int64_t;

auto document_of(const reference_attention& a, int64_t position) {
  return std::upper_bound(a.document_ends.begin(), a.document_ends.end(), position);
}

bool is_kept(const reference_attention& a, int64_t key_position) {
  if (a.kept_first == 0) return false;
  const auto end = document_of(a, key_position);
  const int64_t begin = end == a.document_ends.begin() ? 0 : *std::prev(end);
  return key_position - begin < a.kept_first;
}

bool sees(const reference_attention& a, int64_t batch, int64_t i, int64_t j) {
  const int64_t shorter = a.shorter.empty() ? 0 : a.shorter[batch];
  const int64_t query = a.query_positions[i] - shorter, key = a.key_positions[j];
  if (shorter > 0 && key > a.key_positions.back() - shorter) return false;
  if (document_of(a, query) != document_of(a, key)) return false;
  if (!a.causal) return true;
  return key <= query && (a.window == 0 || query - key < a.window || is_kept(a, key));
}

double scale_of(const reference_attention& a) {
  return a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(a.head_dim));
}

double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += x[d] * y[d];
  return sum;
}

void add(double factor, const double* x, double* y, int64_t n) {
  for (int64_t d = 0; d < n; ++d) y[d] += factor * x[d];
}

void check_size(std::string_view name, std::span<const double> array, int64_t expected) {
  if (std::ssize(array) != expected) {
    throw std::invalid_argument(fmt::format("reference attention: {} has {} elements, expected {}",
                                            name, array.size(), expected));
  }
}

/// Of all batches and heads.
int64_t rows_of(const reference_attention& a) {
  return a.batch * std::ssize(a.query_positions) * a.heads;
}

struct row {
  int64_t index;          ///< of (batch, query token, head) among all rows
  int64_t kv_head;        ///< the key head's first token among (batch, key token, key head)
  std::vector<double> p;  ///< by key token, 0 where hidden
  double lse;
};

/// Softmax of one row. A sink is one more key without a value.
row row_of(const reference_attention& a, std::span<const double> query, std::span<const double> key,
           int64_t batch, int64_t token, int64_t head) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  const auto queries = std::ssize(a.query_positions);
  const auto keys = std::ssize(a.key_positions);
  const int64_t kv_head = head / (a.heads / a.kv_heads);
  row r{.index = (batch * queries + token) * a.heads + head,
        .kv_head = batch * keys * a.kv_heads + kv_head,
        .p = std::vector<double>(keys, hidden),
        .lse = hidden};
  const double* q = &query[r.index * a.head_dim];
  const double scale = scale_of(a), sink = a.sinks.empty() ? hidden : a.sinks[head];
  double maximum = sink;
  for (int64_t j = 0; j < keys; ++j) {
    if (!sees(a, batch, token, j)) continue;
    const double* k = &key[(r.kv_head + j * a.kv_heads) * a.head_dim];
    r.p[j] = scale * dot(q, k, a.head_dim);
    maximum = std::max(maximum, r.p[j]);
  }
  const bool sees_none = maximum == hidden;
  double sum = a.sinks.empty() ? 0 : std::exp(sink - maximum);
  for (double& p : r.p) {
    p = sees_none || p == hidden ? 0 : std::exp(p - maximum);
    sum += p;
  }
  if (sum > 0) {
    for (double& p : r.p) p /= sum;
    r.lse = maximum + std::log(sum);
  }
  return r;
}

template <typename Visit>
void for_each_row(const reference_attention& a, std::span<const double> query,
                  std::span<const double> key, const Visit& visit) {
  for (int64_t batch = 0; batch < a.batch; ++batch) {
    for (int64_t token = 0; token < std::ssize(a.query_positions); ++token) {
      for (int64_t head = 0; head < a.heads; ++head) {
        visit(row_of(a, query, key, batch, token, head));
      }
    }
  }
}

void check(const reference_attention& a, std::span<const double> query, std::span<const double> key,
           std::span<const double> value) {
  if (a.heads < 1 || a.kv_heads < 1 || a.heads % a.kv_heads != 0) {
    throw std::invalid_argument(fmt::format(
        "reference attention: kv_heads {} does not divide heads {}", a.kv_heads, a.heads));
  }
  if (!a.sinks.empty()) check_size("sinks", a.sinks, a.heads);
  const auto keys = a.batch * std::ssize(a.key_positions) * a.kv_heads;
  check_size("query", query, rows_of(a) * a.head_dim);
  check_size("key", key, keys * a.head_dim);
  check_size("value", value, keys * a.value_dim());
}

}  // namespace

reference_output reference_forward(const reference_attention& a, std::span<const double> query,
                                   std::span<const double> key, std::span<const double> value) {
  check(a, query, key, value);
  const auto dims = a.value_dim();
  reference_output result{.output = std::vector<double>(rows_of(a) * dims),
                          .lse = std::vector<double>(rows_of(a))};
  for_each_row(a, query, key, [&](const row& r) {
    double* output = &result.output[r.index * dims];
    for (int64_t j = 0; j < std::ssize(r.p); ++j) {
      if (r.p[j] > 0) add(r.p[j], &value[(r.kv_head + j * a.kv_heads) * dims], output, dims);
    }
    result.lse[r.index] = r.lse;
  });
  return result;
}

reference_gradients reference_backward(const reference_attention& a, std::span<const double> query,
                                       std::span<const double> key, std::span<const double> value,
                                       std::span<const double> output_gradient) {
  check(a, query, key, value);
  const auto dims = a.value_dim();
  check_size("output_gradient", output_gradient, rows_of(a) * dims);
  reference_gradients gradients{.query = std::vector<double>(query.size()),
                                .key = std::vector<double>(key.size()),
                                .value = std::vector<double>(value.size())};
  const double scale = scale_of(a);
  for_each_row(a, query, key, [&](const row& r) {
    const int64_t at_query = r.index * a.head_dim;
    const double* output_row = &output_gradient[r.index * dims];
    std::vector<double> dp(r.p.size());
    double delta = 0;
    for (int64_t j = 0; j < std::ssize(r.p); ++j) {
      if (r.p[j] == 0) continue;
      const int64_t at_value = (r.kv_head + j * a.kv_heads) * dims;
      dp[j] = dot(output_row, &value[at_value], dims);
      delta += r.p[j] * dp[j];
      add(r.p[j], output_row, &gradients.value[at_value], dims);
    }
    for (int64_t j = 0; j < std::ssize(r.p); ++j) {
      if (r.p[j] == 0) continue;
      const int64_t at_key = (r.kv_head + j * a.kv_heads) * a.head_dim;
      const double ds = scale * r.p[j] * (dp[j] - delta);
      add(ds, &key[at_key], &gradients.query[at_query], a.head_dim);
      add(ds, &query[at_query], &gradients.key[at_key], a.head_dim);
    }
  });
  return gradients;
}

}  // namespace attnsim::kernels::cpu
