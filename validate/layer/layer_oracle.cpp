#include "validate/layer/layer_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/error.hpp"
#include "validate/made_numbers.hpp"

namespace attnsim::validate {
namespace {

layer_setting uncut(layer_setting s) {
  s.cut = {};
  return s;
}

template <typename T>
blob to_blob(const std::vector<T>& list) {
  blob data(list.size() * sizeof(T));
  if (!list.empty()) std::memcpy(data.data(), list.data(), data.size());
  return data;
}

template <typename T>
std::vector<T> from_blob(const blob& data) {
  std::vector<T> list(data.size() / sizeof(T));
  if (!list.empty()) std::memcpy(list.data(), data.data(), data.size());
  return list;
}

/// Sums over elements.
struct squares {
  double error = 0, reference = 0;

  void add(double value, double expected) {
    error += (value - expected) * (value - expected);
    reference += expected * expected;
  }
  /// NaN never passes.
  double relative() const { return std::sqrt(error / (reference > 0 ? reference : 1)); }
};

}  // namespace

double layer_numerics::relative_error() const {
  double worst = 0;
  for (const auto& e : errors)
    worst = e.relative > worst || std::isnan(e.relative) ? e.relative : worst;
  return worst;
}

layer_oracle::layer_oracle(const layer_plan& plan, double most_work)
    : plan_(plan), layout_(plan.setting), whole_layout_(uncut(plan.setting)) {
  const auto& problem = plan.forward_attention.work().problem();
  const double tokens = static_cast<double>(problem.sequence * problem.batch);
  const double work = 3 * tokens * plan.setting.cut.data *
                      (static_cast<double>(whole_layout_.elements()) +
                       static_cast<double>(problem.sequence * plan.setting.model.query_width()));
  if (work > most_work)
    throw infeasible(asked("seq"), std::to_string(problem.sequence),
                     "the reference is too slow for a layer of this size; feasible: times alone, "
                     "fewer tokens, a smaller model");
  for (int d = 0; d < plan.setting.cut.data; ++d) expected_.push_back(reference_layer(whole(d)));
}

// --- Inputs ---------------------------------------------------------------------------------------

float layer_oracle::input(layer_tensor t, int data_rank, std::int64_t position, std::int64_t batch,
                          std::int64_t k) const {
  const auto row = (data_rank * std::int64_t{1 << 16} + batch) * (std::int64_t{1} << 24) + position;
  const auto seed = static_cast<std::uint64_t>(t) << 60 ^
                    static_cast<std::uint64_t>(row * plan_.setting.model.hidden + k);
  return static_cast<float>(rounded(mixed(seed), plan_.type()));
}

/// So that sums over a row are of the size of an element.
float layer_oracle::weight(parameter p, std::int64_t row, std::int64_t col) const {
  const auto cols = whole_layout_.of(p).cols;
  const auto seed = std::uint64_t{1} << 63 ^ static_cast<std::uint64_t>(p) << 56 ^
                    static_cast<std::uint64_t>(row * cols + col);
  const double value =
      is_norm(p) ? 1 + 0.25 * mixed(seed) : mixed(seed) * std::sqrt(3 / static_cast<double>(cols));
  return static_cast<float>(rounded(value, plan_.type()));
}

std::vector<float> layer_oracle::activations(layer_tensor t, const layer_executor& on) const {
  const auto batch = plan_.forward_attention.work().problem().batch;
  const auto positions = on.positions();
  std::vector<float> values;
  for (auto row = on.first_row(); row < on.first_row() + on.rows(); ++row) {
    const auto position = positions[static_cast<std::size_t>(row / batch)];
    for (std::int64_t k = 0; k < plan_.setting.model.hidden; ++k)
      values.push_back(input(t, on.data_rank(), position, row % batch, k));
  }
  return values;
}

std::vector<float> layer_oracle::parameters(const layer_executor& on, const transport& t) const {
  std::vector<float> values;
  for (const auto p : all_parameters) {
    const auto& block = layout_.of(p);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      for (std::int64_t col = 0; col < block.cols; ++col) {
        const auto at = layout_.in_layer(p, t.rank(), row, col);
        values.push_back(weight(p, at.row, at.col));
      }
    }
  }
  const auto kept = on.elements(layer_tensor::parameters);
  if (kept == layout_.elements()) return values;
  const auto first = values.begin() + t.rank() / plan_.setting.cut.tensor * kept;
  return {first, first + kept};
}

void layer_oracle::load(layer_executor& on, const transport& t) const {
  on.load(layer_tensor::parameters, parameters(on, t));
  for (const auto what :
       {layer_tensor::residual, layer_tensor::branch, layer_tensor::output_gradient})
    on.load(what, activations(what, on));
}

reference_input layer_oracle::whole(int data_rank) const {
  const auto& problem = plan_.forward_attention.work().problem();
  reference_input in{.model = plan_.setting.model,
                     .tokens = problem.sequence,
                     .batch = problem.batch,
                     .causal = problem.mask == mask_kind::causal};
  for (std::int64_t row = 0; row < in.tokens * in.batch; ++row) {
    for (std::int64_t k = 0; k < in.model.hidden; ++k) {
      const auto of = [&](layer_tensor t) {
        return double{input(t, data_rank, row / in.batch, row % in.batch, k)};
      };
      in.residual.push_back(of(layer_tensor::residual));
      in.branch.push_back(of(layer_tensor::branch));
      in.output_gradient.push_back(of(layer_tensor::output_gradient));
    }
  }
  for (const auto p : all_parameters) {
    const auto& block = whole_layout_.of(p);
    auto& values = in.parameters[static_cast<std::size_t>(p)];
    for (std::int64_t i = 0; i < block.elements(); ++i)
      values.push_back(weight(p, i / block.cols, i % block.cols));
  }
  return in;
}

// --- Results --------------------------------------------------------------------------------------

layer_error layer_oracle::compare_rows(std::string_view what, const std::vector<float>& own,
                                       const numbers& expected, const layer_executor& on,
                                       transport& t) const {
  const auto batch = plan_.forward_attention.work().problem().batch;
  const auto hidden = plan_.setting.model.hidden;
  const auto positions = on.positions();
  squares sums;
  for (std::int64_t i = 0; i < on.rows() * hidden; ++i) {
    const auto row = on.first_row() + i / hidden;
    const auto in_sequence = positions[static_cast<std::size_t>(row / batch)] * batch + row % batch;
    sums.add(own[static_cast<std::size_t>(i)],
             expected[static_cast<std::size_t>(in_sequence * hidden + i % hidden)]);
  }
  squares all;
  for (const auto& other : t.share(to_blob(std::vector{sums}))) {
    const auto one = from_blob<squares>(other).at(0);
    all.error += one.error;
    all.reference += one.reference;
  }
  return {what, all.relative()};
}

/// Of shards, what a tensor rank's replicas have one behind the other.
std::vector<layer_error> layer_oracle::compare_gradients(const std::vector<float>& own,
                                                         transport& t) const {
  const int tensor_ranks = plan_.setting.cut.tensor;
  const bool sharded = own.size() < static_cast<std::size_t>(layout_.elements());
  const auto shared = t.share(to_blob(own));
  std::vector<numbers> of_rank(sharded ? static_cast<std::size_t>(tensor_ranks) : shared.size());
  for (std::size_t rank = 0; rank < shared.size(); ++rank) {
    const auto part = from_blob<float>(shared[rank]);
    auto& all = of_rank[rank % of_rank.size()];
    all.insert(all.end(), part.begin(), part.end());
  }
  std::vector<layer_error> errors;
  for (const auto p : all_parameters) {
    const auto& block = layout_.of(p);
    const auto& whole = whole_layout_.of(p);
    if (whole.elements() == 0) continue;
    numbers found(static_cast<std::size_t>(whole.elements())), expected(found.size());
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      for (std::int64_t i = 0; i < block.elements(); ++i) {
        const auto at = layout_.in_layer(p, static_cast<int>(rank), i / block.cols, i % block.cols);
        found[static_cast<std::size_t>(at.row * whole.cols + at.col)] +=
            of_rank[rank][static_cast<std::size_t>(block.first + i)];
      }
    }
    if (is_norm(p)) {  // every tensor rank has the sum over all
      for (auto& one : found) one /= tensor_ranks;
    }
    squares sums;
    for (const auto& one : expected_) {
      const auto& gradient = one.parameter_gradients[static_cast<std::size_t>(p)];
      for (std::size_t i = 0; i < gradient.size(); ++i) expected[i] += gradient[i];
    }
    for (std::size_t i = 0; i < found.size(); ++i) sums.add(found[i], expected[i]);
    errors.push_back({name_of(p), sums.relative()});
  }
  return errors;
}

layer_numerics layer_oracle::check(const layer_executor& on, transport& t) const {
  const auto& expected = expected_[static_cast<std::size_t>(on.data_rank())];
  layer_numerics n{.tolerance = plan_.type() == data_type::fp32 ? 2e-5 : 2e-2};
  const auto rows = [&](std::string_view what, layer_tensor of, const numbers& reference) {
    n.errors.push_back(compare_rows(what, on.read(of), reference, on, t));
  };
  rows("attention sum", layer_tensor::attention_sum, expected.attention_sum);
  rows("MLP output", layer_tensor::mlp_output, expected.mlp_output);
  rows("input gradient", layer_tensor::input_gradient, expected.input_gradient);
  for (const auto& e : compare_gradients(on.read(layer_tensor::parameter_gradients), t))
    n.errors.push_back(e);
  n.passed = n.relative_error() <= n.tolerance;
  return n;
}

}  // namespace attnsim::validate
