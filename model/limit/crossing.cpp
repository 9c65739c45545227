#include "model/limit/crossing.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace attnsim {
namespace {

struct hull_point {
  double pairs, bytes;
};

std::array<hull_point, 4> points_of_full(const divided_heads& d) {
  const double n = d.rows, m = d.columns, own_rows = n * d.share, own_columns = m * d.share;
  return {{{own_rows * own_columns, own_rows * d.row + own_columns * d.column},
           {n * own_columns, n * d.row},
           {own_rows * m, m * d.column},
           {n * m, (n - own_rows) * d.row + (m - own_columns) * d.column}}};
}

double least_of_full(const divided_heads& d, double price) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& p : points_of_full(d))
    least = std::min(least, p.bytes - price * d.group * p.pairs);
  return least;
}

/// Of one head under a causal mask, by the rows and columns of B that come in.
class causal_head {
 public:
  causal_head(const divided_heads& d, double price)
      : d_(d), value_(price * d.group), own_(d.rows * d.share), others_(d.rows - own_) {}

  /// Between the corners the function is bilinear where t is n_A, so least on an edge; beyond, convex in rows and columns apart.
  double least() const {
    double best = at(0, 0);
    for (const double sum : {std::max(0.0, others_ - own_), others_}) {
      const double rows = least_on_diagonal(sum);
      best = std::min({best, at(sum, 0), at(0, sum), at(rows, sum - rows)});
    }
    if (value_ <= 0) return best;
    const auto apart = [&](double cost) {
      return std::clamp(others_ + 0.5 - cost / value_, 0.0, others_);
    };
    const double rows = apart(d_.row), columns = apart(d_.column);
    if (rows + columns >= others_) best = std::min(best, at(rows, columns));
    return best;
  }

 private:
  double at(double rows, double columns) const {
    const double r = own_ + rows, c = own_ + columns;
    const double both = std::max(own_, r + c - d_.rows);
    const double pairs = r * c - both * (both - 1) / 2;
    const double left = std::min(own_, std::max(0.0, others_ - rows - columns));
    return rows * d_.row + columns * d_.column + left * std::min(d_.row, d_.column) -
           value_ * pairs;
  }

  /// Rows where, with so many rows and columns together, the sum is least.
  double least_on_diagonal(double sum) const {
    if (value_ <= 0) return d_.row < d_.column ? sum : 0;
    return std::clamp(sum / 2 - (d_.row - d_.column) / (2 * value_), 0.0, sum);
  }

  const divided_heads& d_;
  double value_;
  double own_, others_;
};

}  // namespace

double divided_heads::pairs() const {
  return units * group * (causal ? rows * (rows + 1) / 2 : rows * columns);
}

double least_crossing(const divided_heads& d, double price) {
  return d.units * (d.causal ? causal_head(d, price).least() : least_of_full(d, price));
}

std::vector<double> turning_prices(const divided_heads& d) {
  std::vector<double> prices;
  const auto points = points_of_full(d);
  for (const auto& one : points) {
    for (const auto& other : points) {
      const double price = (other.bytes - one.bytes) / (d.group * (other.pairs - one.pairs));
      if (!d.causal && other.pairs > one.pairs && price > 0) prices.push_back(price);
    }
  }
  return prices;
}

}  // namespace attnsim
