#include "validate/layer/reference_layer.hpp"

#include <cmath>

#include "kernels/cpu/reference.hpp"
#include "kernels/layer_block.hpp"

namespace attnsim::validate {
namespace {

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

numbers sum(const numbers& a, const numbers& b) {
  numbers result(a);
  for (std::size_t i = 0; i < b.size(); ++i) result[i] += b[i];
  return result;
}

/// x W^T: x rows x inner, W outputs x inner.
numbers times_transposed(const numbers& x, const numbers& w, std::int64_t inner) {
  const auto rows = std::int64_t(x.size()) / inner, outputs = std::int64_t(w.size()) / inner;
  numbers result(index(rows * outputs));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < outputs; ++j) {
      double value = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        value += x[index(i * inner + k)] * w[index(j * inner + k)];
      result[index(i * outputs + j)] = value;
    }
  }
  return result;
}

/// g W: the gradient of x.
numbers input_gradient(const numbers& g, const numbers& w, std::int64_t outputs) {
  const auto rows = std::int64_t(g.size()) / outputs, inner = std::int64_t(w.size()) / outputs;
  numbers result(index(rows * inner));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < outputs; ++j) {
      for (std::int64_t k = 0; k < inner; ++k)
        result[index(i * inner + k)] += g[index(i * outputs + j)] * w[index(j * inner + k)];
    }
  }
  return result;
}

/// g^T x: the gradient of W.
numbers weight_gradient(const numbers& g, const numbers& x, std::int64_t rows) {
  const auto outputs = std::int64_t(g.size()) / rows, inner = std::int64_t(x.size()) / rows;
  numbers result(index(outputs * inner));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < outputs; ++j) {
      for (std::int64_t k = 0; k < inner; ++k)
        result[index(j * inner + k)] += g[index(i * outputs + j)] * x[index(i * inner + k)];
    }
  }
  return result;
}

double scale_of_row(const numbers& x, std::int64_t row, std::int64_t width) {
  double square = 0;
  for (std::int64_t k = 0; k < width; ++k) square += std::pow(x[index(row * width + k)], 2);
  return 1 / std::sqrt(square / static_cast<double>(width) + double{kernels::norm_epsilon});
}

numbers normed(const numbers& x, const numbers& weight) {
  const auto width = std::int64_t(weight.size());
  numbers result(x.size());
  for (std::int64_t i = 0; i < std::int64_t(x.size()) / width; ++i) {
    const double scale = scale_of_row(x, i, width);
    for (std::int64_t k = 0; k < width; ++k)
      result[index(i * width + k)] = x[index(i * width + k)] * scale * weight[index(k)];
  }
  return result;
}

/// Of x and, added up over rows, of the weight.
std::pair<numbers, numbers> norm_gradients(const numbers& x, const numbers& weight,
                                           const numbers& gradient) {
  const auto width = std::int64_t(weight.size());
  numbers of_x(x.size()), of_weight(weight.size());
  for (std::int64_t i = 0; i < std::int64_t(x.size()) / width; ++i) {
    const double scale = scale_of_row(x, i, width);
    double dot = 0;
    for (std::int64_t k = 0; k < width; ++k)
      dot += gradient[index(i * width + k)] * weight[index(k)] * x[index(i * width + k)];
    for (std::int64_t k = 0; k < width; ++k) {
      const auto at = index(i * width + k);
      of_weight[index(k)] += gradient[at] * x[at] * scale;
      of_x[at] = scale * gradient[at] * weight[index(k)] -
                 std::pow(scale, 3) * x[at] * dot / static_cast<double>(width);
    }
  }
  return {of_x, of_weight};
}

/// Columns of a tensor among those of projections, and how its rows become [batch][token][head][d].
struct head_columns {
  std::int64_t first, heads, head_dim;
};

struct layer_sizes {
  explicit layer_sizes(const reference_input& in)
      : tokens(in.tokens),
        batch(in.batch),
        width(in.model.query_width() + in.model.key_width() + in.model.value_width()) {
    const auto& s = in.model.shape;
    q = {0, s.heads, s.head_dim};
    k = {in.model.query_width(), s.kv_heads, s.head_dim};
    v = {in.model.query_width() + in.model.key_width(), s.kv_heads, s.value_dim()};
  }
  std::int64_t tokens, batch, width;
  head_columns q{}, k{}, v{};
};

/// Calls visit(place among projections, place in [batch][token][head][d], token, d) for each element of a tensor.
template <typename Visit>
void for_each(const layer_sizes& n, const head_columns& c, const Visit& visit) {
  for (std::int64_t t = 0; t < n.tokens; ++t) {
    for (std::int64_t b = 0; b < n.batch; ++b) {
      for (std::int64_t h = 0; h < c.heads; ++h) {
        for (std::int64_t d = 0; d < c.head_dim; ++d) {
          visit(index((t * n.batch + b) * n.width + c.first + h * c.head_dim + d),
                index(((b * n.tokens + t) * c.heads + h) * c.head_dim + d), t, d);
        }
      }
    }
  }
}

numbers heads_of(const numbers& projected, const layer_sizes& n, const head_columns& c) {
  numbers result(index(n.tokens * n.batch * c.heads * c.head_dim));
  for_each(n, c, [&](auto from, auto to, auto, auto) { result[to] = projected[from]; });
  return result;
}

/// Turned by its position, or back.
numbers turned(const numbers& x, const layer_sizes& n, const head_columns& c, double direction) {
  numbers result(x.size());
  const auto half = c.head_dim / 2;
  for_each(n, c, [&](auto, auto at, auto t, auto d) {
    const double angle = direction * static_cast<double>(t) *
                         std::pow(rotary_base, -2.0 * static_cast<double>(d % half) /
                                                   static_cast<double>(c.head_dim));
    const auto partner = d < half ? at + index(half) : at - index(half);
    const double sign = d < half ? -1 : 1;
    result[at] = x[at] * std::cos(angle) + sign * x[partner] * std::sin(angle);
  });
  return result;
}

/// The other way round than heads_of.
void add_heads(numbers& projected, const numbers& x, const layer_sizes& n, const head_columns& c) {
  for_each(n, c, [&](auto to, auto from, auto, auto) { projected[to] += x[from]; });
}

kernels::cpu::reference_attention attention_of(const reference_input& in) {
  const auto& s = in.model.shape;
  std::vector<std::int64_t> positions(index(in.tokens));
  for (std::int64_t i = 0; i < in.tokens; ++i) positions[index(i)] = i;
  return {.batch = in.batch,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .v_head_dim = s.value_dim(),
          .query_positions = positions,
          .key_positions = positions,
          .causal = in.causal};
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

numbers gated(const numbers& up, std::int64_t rows) {
  const auto width = std::int64_t(up.size()) / rows / 2;
  numbers result(index(rows * width));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < width; ++k) {
      const double g = up[index(2 * i * width + k)], u = up[index((2 * i + 1) * width + k)];
      result[index(i * width + k)] = g * sigmoid(g) * u;
    }
  }
  return result;
}

numbers gate_gradient(const numbers& up, const numbers& gradient, std::int64_t rows) {
  const auto width = std::int64_t(up.size()) / rows / 2;
  numbers result(up.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < width; ++k) {
      const auto of_gate = index(2 * i * width + k), of_up = index((2 * i + 1) * width + k);
      const double g = up[of_gate], s = sigmoid(g), dy = gradient[index(i * width + k)];
      result[of_gate] = dy * up[of_up] * (s + g * s * (1 - s));
      result[of_up] = dy * g * s;
    }
  }
  return result;
}

const numbers& weight_of(const reference_input& in, parameter p) {
  return in.parameters[static_cast<std::size_t>(p)];
}

/// Of an MLP on rows x, and its gradients for those of what it puts out.
struct mlp_pass {
  mlp_pass(const numbers& x, std::int64_t width, const numbers& up_weight,
           const numbers& down_weight)
      : rows(std::int64_t(x.size()) / width),
        up(times_transposed(x, up_weight, width)),
        act(gated(up, rows)),
        output(times_transposed(act, down_weight, std::int64_t(down_weight.size()) / width)) {}

  void backward(const numbers& x, std::int64_t width, const numbers& up_weight,
                const numbers& down_weight, const numbers& dy) {
    of_down = weight_gradient(dy, act, rows);
    const auto d_up = gate_gradient(up, input_gradient(dy, down_weight, width), rows);
    of_up = weight_gradient(d_up, x, rows);
    of_x = input_gradient(d_up, up_weight, std::int64_t(up_weight.size()) / width);
  }

  std::int64_t rows;
  numbers up, act, output;
  numbers of_x, of_up, of_down;
};

/// The MLP's output and its parameters' gradients go to the result; that of its input is returned.
numbers dense_mlp(const reference_input& in, const numbers& x, reference_result& r) {
  const auto &up = weight_of(in, parameter::up), &down = weight_of(in, parameter::down);
  mlp_pass mlp(x, in.model.hidden, up, down);
  mlp.backward(x, in.model.hidden, up, down, in.output_gradient);
  r.mlp_output = mlp.output;
  r.parameter_gradients[static_cast<std::size_t>(parameter::up)] = mlp.of_up;
  r.parameter_gradients[static_cast<std::size_t>(parameter::down)] = mlp.of_down;
  return mlp.of_x;
}

numbers slice(const numbers& all, std::int64_t part, std::int64_t parts) {
  const auto size = std::int64_t(all.size()) / parts;
  return {all.begin() + part * size, all.begin() + (part + 1) * size};
}

/// The softmax of each row's logits of its experts, 0 for the others.
numbers expert_weights(const numbers& logits, const transformer& m) {
  numbers weights(logits.size());
  for (std::int64_t i = 0; i < std::int64_t(logits.size()) / m.experts; ++i) {
    double sum = 0;
    for (int j = 0; j < m.active_experts; ++j) {
      const auto at = index(i * m.experts + (i * m.active_experts + j) % m.experts);
      sum += weights[at] = std::exp(logits[at]);
    }
    for (int e = 0; e < m.experts; ++e) weights[index(i * m.experts + e)] /= sum;
  }
  return weights;
}

/// Every expert on all rows, most of them with no weight: slow, and plainly so.
numbers experts_of(const reference_input& in, const numbers& x, reference_result& r) {
  const auto& m = in.model;
  const auto rows = std::int64_t(x.size()) / m.hidden;
  const auto& router = weight_of(in, parameter::router);
  const auto weights = expert_weights(times_transposed(x, router, m.hidden), m);
  numbers slopes(weights.size()), of_x(x.size());
  r.mlp_output.assign(x.size(), 0);
  auto &of_up = r.parameter_gradients[static_cast<std::size_t>(parameter::experts_up)],
       &of_down = r.parameter_gradients[static_cast<std::size_t>(parameter::experts_down)];
  for (int e = 0; e < m.experts; ++e) {
    const auto up = slice(weight_of(in, parameter::experts_up), e, m.experts),
               down = slice(weight_of(in, parameter::experts_down), e, m.experts);
    mlp_pass expert(x, m.hidden, up, down);
    auto dy = in.output_gradient;
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto at = index(i * m.experts + e);
      for (std::int64_t k = 0; k < m.hidden; ++k) {
        const auto element = index(i * m.hidden + k);
        r.mlp_output[element] += weights[at] * expert.output[element];
        slopes[at] += dy[element] * expert.output[element];
        dy[element] *= weights[at];
      }
    }
    expert.backward(x, m.hidden, up, down, dy);
    of_x = sum(of_x, expert.of_x);
    of_up.insert(of_up.end(), expert.of_up.begin(), expert.of_up.end());
    of_down.insert(of_down.end(), expert.of_down.begin(), expert.of_down.end());
  }
  numbers of_logits(weights.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    double mean = 0;
    for (int e = 0; e < m.experts; ++e)
      mean += weights[index(i * m.experts + e)] * slopes[index(i * m.experts + e)];
    for (int e = 0; e < m.experts; ++e) {
      const auto at = index(i * m.experts + e);
      of_logits[at] = weights[at] * (slopes[at] - mean);
    }
  }
  r.parameter_gradients[static_cast<std::size_t>(parameter::router)] =
      weight_gradient(of_logits, x, rows);
  return sum(of_x, input_gradient(of_logits, router, m.experts));
}

}  // namespace

reference_result reference_layer(const reference_input& in) {
  const layer_sizes n(in);
  const auto rows = n.tokens * n.batch, hidden = in.model.hidden;
  const auto weight = [&](parameter p) -> const numbers& {
    return in.parameters[static_cast<std::size_t>(p)];
  };
  const head_columns out{0, n.q.heads, n.v.head_dim};
  layer_sizes of_output = n;
  of_output.width = out.heads * out.head_dim;

  const auto x0 = sum(in.residual, in.branch), n0 = normed(x0, weight(parameter::attention_norm));
  const auto projected = times_transposed(n0, weight(parameter::projections), hidden);
  const auto q = turned(heads_of(projected, n, n.q), n, n.q, 1),
             k = turned(heads_of(projected, n, n.k), n, n.k, 1), v = heads_of(projected, n, n.v);
  const auto attention = attention_of(in);
  numbers attended(index(rows * of_output.width));
  add_heads(attended, kernels::cpu::reference_forward(attention, q, k, v).output, of_output, out);
  const auto x1 = sum(x0, times_transposed(attended, weight(parameter::output), of_output.width));
  const auto n1 = normed(x1, weight(parameter::mlp_norm));

  reference_result r{.attention_sum = x1};
  const auto d_n1 = in.model.experts > 0 ? experts_of(in, n1, r) : dense_mlp(in, n1, r);
  const auto keep = [&](parameter p, numbers gradient) {
    r.parameter_gradients[static_cast<std::size_t>(p)] = std::move(gradient);
  };
  const auto [d_x1, d_mlp_norm] = norm_gradients(x1, weight(parameter::mlp_norm), d_n1);
  keep(parameter::mlp_norm, d_mlp_norm);
  const auto d_sum = sum(in.output_gradient, d_x1);

  keep(parameter::output, weight_gradient(d_sum, attended, rows));
  const auto d_attended =
      heads_of(input_gradient(d_sum, weight(parameter::output), hidden), of_output, out);
  const auto d = kernels::cpu::reference_backward(attention, q, k, v, d_attended);
  numbers d_projected(index(rows * n.width));
  add_heads(d_projected, turned(d.query, n, n.q, -1), n, n.q);
  add_heads(d_projected, turned(d.key, n, n.k, -1), n, n.k);
  add_heads(d_projected, d.value, n, n.v);
  keep(parameter::projections, weight_gradient(d_projected, n0, rows));
  const auto [d_x0, d_attention_norm] =
      norm_gradients(x0, weight(parameter::attention_norm),
                     input_gradient(d_projected, weight(parameter::projections), n.width));
  keep(parameter::attention_norm, d_attention_norm);
  r.input_gradient = sum(d_sum, d_x0);
  return r;
}

}  // namespace attnsim::validate
