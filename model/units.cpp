#include "model/units.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>
#include <stdexcept>

namespace attnsim {
namespace {

struct unit {
  std::string_view name;
  double factor;
};

constexpr unit time_units[] = {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6},
                               {"ms", 1e-3},  {"s", 1},     {"min", 60}};
constexpr unit byte_units[] = {{"B", 1},           {"kB", 1e3},           {"MB", 1e6},
                               {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
                               {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr unit bandwidth_units[] = {
    {"B/s", 1},        {"kB/s", 1e3},        {"MB/s", 1e6},           {"GB/s", 1e9},
    {"TB/s", 1e12},    {"MiB/s", 1048576.0}, {"GiB/s", 1073741824.0}, {"Mb/s", 1e6 / 8},
    {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8},   {"Mbit/s", 1e6 / 8},     {"Gbit/s", 1e9 / 8}};
constexpr unit flop_units[] = {
    {"FLOP", 1}, {"MFLOP", 1e6}, {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}};
constexpr unit flop_rate_units[] = {
    {"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};

constexpr unit power_units[] = {{"W", 1}, {"kW", 1e3}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The value in SI units, or NaN when the text is not "NUMBER UNIT" with one of these units.
double parse_with(std::span<const unit> units, std::string_view text) {
  text = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return NAN;
  const auto name = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const auto& u : units) {
    if (u.name == name) return number * u.factor;
  }
  return NAN;
}

template <typename Quantity>
Quantity checked(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument(std::string(expectation<Quantity>()));
  if constexpr (std::is_integral_v<typename Quantity::representation>) {
    if (std::abs(value) > 9e18) throw std::invalid_argument(std::string(expectation<Quantity>()));
    return Quantity(std::llround(value));
  } else {
    return Quantity(value);
  }
}

/// `units` in ascending order; the largest that leaves the number at or above 1.
std::string format_with(std::span<const unit> units, double value) {
  const unit* best = &units.front();
  for (const auto& u : units) {
    if (std::abs(value) >= u.factor * 0.9999995) best = &u;
  }
  if (value == 0) return fmt::format("0 {}", best->name);
  return fmt::format("{:#.4g} {}", value / best->factor, best->name);
}

}  // namespace

template <>
std::string_view expectation<seconds>() {
  return "expected a time with its unit, such as '2 us'";
}
template <>
std::string_view expectation<byte_count>() {
  return "expected a size with its unit, such as '64 GiB'";
}
template <>
std::string_view expectation<bandwidth>() {
  return "expected a bandwidth with its unit, such as '400 Gb/s' or '50 GB/s'";
}
template <>
std::string_view expectation<flop_count>() {
  return "expected operations with their unit, such as '1 TFLOP'";
}
template <>
std::string_view expectation<flop_rate>() {
  return "expected a rate with its unit, such as '989 TFLOP/s'";
}
template <>
std::string_view expectation<watts>() {
  return "expected a power with its unit, such as '700 W'";
}

template <>
seconds parse<seconds>(std::string_view text) {
  return checked<seconds>(parse_with(time_units, text));
}
template <>
byte_count parse<byte_count>(std::string_view text) {
  return checked<byte_count>(parse_with(byte_units, text));
}
template <>
bandwidth parse<bandwidth>(std::string_view text) {
  return checked<bandwidth>(parse_with(bandwidth_units, text));
}
template <>
flop_count parse<flop_count>(std::string_view text) {
  return checked<flop_count>(parse_with(flop_units, text));
}
template <>
flop_rate parse<flop_rate>(std::string_view text) {
  return checked<flop_rate>(parse_with(flop_rate_units, text));
}
template <>
watts parse<watts>(std::string_view text) {
  return checked<watts>(parse_with(power_units, text));
}

std::string to_string(seconds t) {
  return format_with(std::span(time_units).first(5), t.value());
}
std::string to_string(byte_count n) {
  static constexpr unit binary[] = {{"B", 1},
                                    {"KiB", 1024.0},
                                    {"MiB", 1048576.0},
                                    {"GiB", 1073741824.0},
                                    {"TiB", 1099511627776.0}};
  return format_with(binary, static_cast<double>(n.value()));
}
std::string to_string(bandwidth rate) {
  return format_with(std::span(bandwidth_units).first(5), rate.value());
}
std::string to_string(flop_rate rate) {
  return format_with(flop_rate_units, rate.value());
}
std::string to_string(flop_count n) {
  return format_with(flop_units, n.value());
}
std::string to_string(watts power) {
  return format_with(power_units, power.value());
}
std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::int64_t parse_whole(const std::string& text, std::int64_t least) {
  const char* const end_of_text = text.data() + text.size();
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), end_of_text, value);
  std::int64_t factor = 1;
  if (end == end_of_text - 1) {
    factor = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : 0;
    ++end;
  }
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const bool valid =
      error == std::errc{} && end == end_of_text && factor > 0 && value <= most / factor;
  if (!valid || value * factor < least) {
    throw std::invalid_argument(
        fmt::format("expected a whole number of at least {}, such as 8, 128K or 1M", least));
  }
  return value * factor;
}

}  // namespace attnsim
