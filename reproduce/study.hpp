// Published results recomputed. A study takes one publication's figures, states what it assumes and what it fits, and
// predicts every figure; errors stay as they come out. One file a study, one line each in the table of study.cpp.
//
// Figures are ratios, times (s), rates (FLOP/s, bytes/s) or shares, as the study says; errors are relative,
// predicted / published - 1.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnsim::reproduce {

struct point {
  std::string series;  ///< figures that belong together and share a mean error
  std::string figure;  ///< what was measured: "2.7B, 64 GPUs, 32768 tokens"
  double published = 0;
  double predicted = 0;
  bool fitted = false;  ///< a parameter was chosen on this figure

  double error() const { return predicted / published - 1; }
};

/// The same question under another assumption, or part of the answer.
struct what_if {
  std::string assumption;
  std::string figure;
  double published = 0;  ///< zero: nothing to compare with
  double predicted = 0;
};

struct result {
  std::string unit;  ///< of all figures
  std::vector<std::string> assumptions;
  std::vector<std::string> fitted;  ///< numbers chosen on the figures, with their values
  std::vector<point> points;
  std::vector<what_if> what_ifs;
  /// Figures of questions that were published more than once, and for each in place of a prediction the median of its question's: no
  /// prediction can be nearer to them.
  std::vector<point> repeats;
  std::vector<std::string> notes;  ///< what remains unexplained, and why
};

struct study {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  result (*run)();
};

std::span<const study> studies();

/// Throws input_error that lists the names.
const study& find_study(std::string_view name);

inline constexpr double large_error = 0.3;

struct series_error {
  std::string series;
  std::size_t points = 0;
  double mean = 0;  ///< of the absolute errors
  double max = 0;
  std::size_t large = 0;  ///< errors beyond large_error
  bool fitted = false;
};

/// One for each series, in order of appearance.
std::vector<series_error> errors_of(const std::vector<point>&);

/// Over all figures that nothing was fitted to; "all predicted".
series_error error_of_predicted(std::vector<point>);

}  // namespace attnsim::reproduce
