#include "reproduce/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/error.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

constexpr study table[] = {
    {"attention2d-a100", "Attention2D over Ring Attention, GPT-3 models on 16 and 64 A100",
     "arXiv 2503.15758, result figures, digitised: speedups +-0.02, times +-1 % of full scale",
     attention2d_a100},
    {"attention2d-h100", "Attention2D over Ring Attention on 64 nodes of one H100",
     "arXiv 2503.15758, abstract", attention2d_h100},
    {"mesh", "Mesh-Attention over Ring Attention on 256 GPUs: traffic and speed",
     "arXiv 2512.20968, abstract; waiting share second-hand from a blog on the paper", mesh},
};

}  // namespace

std::span<const study> studies() {
  return table;
}

const study& find_study(std::string_view name) {
  std::string names;
  for (const auto& s : table) {
    if (s.name == name) return s;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", s.name);
  }
  throw input_error("NAME", std::string(name), "expected one of: " + names);
}

std::vector<series_error> errors_of(const std::vector<point>& points) {
  std::vector<series_error> all;
  for (const auto& p : points) {
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const auto& one) { return one.series == p.series; });
    if (found == all.end()) found = all.insert(all.end(), {.series = p.series, .fitted = p.fitted});
    const double error = std::abs(p.error());
    ++found->points;
    found->mean += (error - found->mean) / static_cast<double>(found->points);
    found->max = std::max(found->max, error);
  }
  return all;
}

}  // namespace attnsim::reproduce
