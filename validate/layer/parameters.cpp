#include "validate/layer/parameters.hpp"

#include "model/named.hpp"

namespace attnsim::validate {
namespace {

constexpr name_table<parameter, 9> parameter_names{{{parameter::projections, "projections"},
                                                    {parameter::output, "output"},
                                                    {parameter::up, "MLP up"},
                                                    {parameter::down, "MLP down"},
                                                    {parameter::router, "router"},
                                                    {parameter::experts_up, "experts up"},
                                                    {parameter::experts_down, "experts down"},
                                                    {parameter::attention_norm, "attention norm"},
                                                    {parameter::mlp_norm, "MLP norm"}}};

}  // namespace

std::string_view name_of(parameter p) {
  return find_name(parameter_names, p);
}

parameter_layout::parameter_layout(const layer_setting& s)
    : query_(s.model.query_width() / s.cut.tensor),
      key_(s.model.key_width() / s.cut.tensor),
      value_(s.model.value_width() / s.cut.tensor),
      inner_(s.model.intermediate / s.cut.tensor),
      ranks_(s.cut.tensor),
      expert_ranks_(s.cut.expert) {
  const auto h = s.model.hidden;
  const auto add = [&](parameter p, std::int64_t rows, std::int64_t cols) {
    blocks_[static_cast<std::size_t>(p)] = {elements_, rows, cols};
    elements_ += rows * cols;
  };
  add(parameter::projections, query_ + key_ + value_, h);
  add(parameter::output, h, s.model.output_width() / s.cut.tensor);
  if (s.model.experts > 0) {
    const auto f = s.model.expert_intermediate;
    const std::int64_t count = s.model.experts / s.cut.expert;
    add(parameter::router, s.model.experts, h);
    add(parameter::experts_up, count * 2 * f, h);
    add(parameter::experts_down, count * h, f);
  } else {
    add(parameter::up, 2 * inner_, h);
    add(parameter::down, h, inner_);
  }
  add(parameter::attention_norm, 1, h);
  add(parameter::mlp_norm, 1, h);
}

parameter_place parameter_layout::in_layer(parameter p, int rank, std::int64_t row,
                                           std::int64_t col) const {
  const int tensor_rank = rank % ranks_;
  switch (p) {
    case parameter::projections: {
      std::int64_t before = 0;  // rows of all ranks of the widths before this one
      for (const auto width : {query_, key_, value_}) {
        if (row < width) return {before + tensor_rank * width + row, col};
        row -= width;
        before += ranks_ * width;
      }
      return {before + row, col};
    }
    case parameter::up: {
      const auto half = row / inner_;
      return {(half * ranks_ + tensor_rank) * inner_ + row % inner_, col};
    }
    case parameter::output:
    case parameter::down:
      return {row, tensor_rank * of(p).cols + col};
    case parameter::experts_up:
    case parameter::experts_down:
      return {rank % expert_ranks_ * of(p).rows + row, col};
    default:
      return {row, col};
  }
}

}  // namespace attnsim::validate
