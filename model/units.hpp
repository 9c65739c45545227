// Physical quantities as strong types in SI units. A value is printed and parsed with its unit; there is no implicit
// conversion from or to a plain number. 1 GB = 1e9 bytes, 1 GiB = 2^30 bytes, 8 Gb = 1 GB.
//
//   parse<seconds>("2 us"), parse<bandwidth>("400 Gb/s"), parse<byte_count>("64 GiB"), parse<flop_rate>("989 TFLOP/s")
//   to_string(seconds(1.344e-3)) == "1.344 ms"
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace attnsim {

template <typename Unit, typename Representation>
class quantity {
 public:
  using representation = Representation;

  constexpr quantity() = default;
  constexpr explicit quantity(Representation value) : value_(value) {}

  constexpr Representation value() const { return value_; }
  constexpr auto operator<=>(const quantity&) const = default;

  constexpr quantity& operator+=(quantity other) { return value_ += other.value_, *this; }
  constexpr quantity& operator-=(quantity other) { return value_ -= other.value_, *this; }
  friend constexpr quantity operator+(quantity a, quantity b) {
    return quantity(a.value_ + b.value_);
  }
  friend constexpr quantity operator-(quantity a, quantity b) {
    return quantity(a.value_ - b.value_);
  }
  friend constexpr quantity operator*(quantity a, Representation n) {
    return quantity(a.value_ * n);
  }
  friend constexpr quantity operator*(Representation n, quantity a) {
    return quantity(n * a.value_);
  }
  friend constexpr quantity operator/(quantity a, Representation n) {
    return quantity(a.value_ / n);
  }
  friend constexpr double operator/(quantity a, quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Representation value_{};
};

using seconds = quantity<struct seconds_unit, double>;
using byte_count = quantity<struct byte_unit, std::int64_t>;
using bandwidth = quantity<struct bandwidth_unit, double>;  ///< bytes per second
using flop_count = quantity<struct flop_unit, double>;
using flop_rate = quantity<struct flop_rate_unit, double>;  ///< FLOP per second
using watts = quantity<struct watt_unit, double>;

constexpr seconds operator/(byte_count n, bandwidth rate) {
  return seconds(static_cast<double>(n.value()) / rate.value());
}
constexpr seconds operator/(flop_count n, flop_rate rate) {
  return seconds(n.value() / rate.value());
}
constexpr flop_rate operator/(flop_count n, seconds t) {
  return flop_rate(n.value() / t.value());
}
constexpr bandwidth operator/(byte_count n, seconds t) {
  return bandwidth(static_cast<double>(n.value()) / t.value());
}

/// Reads "NUMBER UNIT" (the blank is optional). Throws std::invalid_argument saying what is expected when the number,
/// the unit or its dimension is wrong, or the value is not finite.
template <typename Quantity>
Quantity parse(std::string_view text);

/// A count as people type it: 1048576, 128K, 1M (binary multiples, as token counts are). Throws std::invalid_argument
/// unless it is a whole number of at least `least`.
std::int64_t parse_whole(const std::string& text, std::int64_t least = 1);

/// What `parse` accepts, for messages: "a time with its unit, such as '2 us'".
template <typename Quantity>
std::string_view expectation();

/// Four significant digits with the unit that puts the number in [1, 1000).
std::string to_string(seconds);
std::string to_string(byte_count);  ///< binary units: "64.00 GiB"
std::string to_string(bandwidth);
std::string to_string(flop_rate);
std::string to_string(flop_count);
std::string to_string(watts);
std::string percent(double share);  ///< "12.3 %"

}  // namespace attnsim
