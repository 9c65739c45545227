#include "validate/made_numbers.hpp"

#include "kernels/with_type.hpp"

namespace attnsim::validate {

double mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1;
}

double rounded(double value, data_type type) {
  return kernels::with_type(type, [&]<typename T>(std::type_identity<T>) -> double {
    return float{T(static_cast<float>(value))};
  });
}

}  // namespace attnsim::validate
