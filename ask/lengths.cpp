#include "ask/lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <sstream>

#include "model/error.hpp"
#include "model/read_file.hpp"
#include "model/units.hpp"

namespace attnsim::ask {
namespace {

constexpr std::string_view lognormal = "lognormal:";
constexpr std::int64_t most_count = 1 << 20, most_tokens = std::int64_t{1} << 31;

/// Errors are about a field, which only read_lengths knows.
struct refused_length {
  std::string value, expected;
};

[[noreturn]] void refuse(const std::string& value, const std::string& expected) {
  throw refused_length{value, expected};
}

std::int64_t size_of(const std::string& text, std::int64_t most) {
  try {
    const auto size = parse_whole(text);
    if (size <= most) return size;
  } catch (const std::invalid_argument&) {
  }
  refuse(text, fmt::format("expected a whole number from 1 to {}", most));
}

std::map<std::string, std::string> settings_of(const std::string& text) {
  std::map<std::string, std::string> settings;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one, ',');) {
    const auto equals = one.find('=');
    const auto key = one.substr(0, equals);
    const bool known =
        key == "mean" || key == "sigma" || key == "max" || key == "count" || key == "seed";
    if (equals == std::string::npos || !known)
      refuse(one, "expected mean=N, sigma=X, max=N, count=N or seed=N");
    settings[key] = one.substr(equals + 1);
  }
  for (const auto* key : {"mean", "sigma", "max", "count"}) {
    if (!settings.contains(key))
      refuse(text,
             fmt::format("expected {}= as well: lognormal:mean=N,sigma=X,max=N,count=N", key));
  }
  return settings;
}

double sigma_of(const std::string& text) {
  std::size_t end = 0;
  double sigma = -1;
  try {
    sigma = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  constexpr double widest = 10;
  if (end != text.size() || !(sigma >= 0 && sigma <= widest))
    refuse(text, fmt::format("expected sigma from 0 to {}", widest));
  return sigma;
}

/// By Box and Muller from whole numbers: the same on every machine.
std::vector<std::int64_t> drawn(const std::string& text) {
  auto settings = settings_of(text);
  const auto count = size_of(settings["count"], most_count),
             most = size_of(settings["max"], most_tokens);
  const double mean = static_cast<double>(size_of(settings["mean"], most_tokens));
  const double sigma = sigma_of(settings["sigma"]);
  std::mt19937_64 random(settings.contains("seed")
                             ? static_cast<std::uint64_t>(size_of(settings["seed"], most_tokens))
                             : 1);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const double middle = std::log(mean) - sigma * sigma / 2;
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double length = std::exp(middle + sigma * radius * std::cos(2 * M_PI * uniform()));
    lengths.push_back(
        static_cast<std::int64_t>(std::clamp(std::round(length), 1.0, static_cast<double>(most))));
  }
  return lengths;
}

std::vector<std::int64_t> listed(const std::string& file) {
  std::vector<std::int64_t> lengths;
  std::istringstream stream(read_file(file));
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      lengths.push_back(parse_whole(line));
    } catch (const std::invalid_argument&) {
      throw input_error(fmt::format("{}:{}", file, number), line,
                        "expected a whole number of at least 1");
    }
  }
  if (lengths.empty()) refuse(file, "expected a file with a length a line");
  return lengths;
}

}  // namespace

std::vector<std::int64_t> read_lengths(const std::string& text, const std::string& field) {
  try {
    return text.starts_with(lognormal) ? drawn(text.substr(lognormal.size())) : listed(text);
  } catch (const refused_length& r) {
    throw input_error(asked(field), r.value, r.expected);
  }
}

}  // namespace attnsim::ask
