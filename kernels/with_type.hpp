// The way from an element type chosen at run time to code compiled for it.
#pragma once

#include <type_traits>

#include "kernels/float16.hpp"
#include "kernels/float8.hpp"
#include "model/attention/attention.hpp"

namespace attnsim::kernels {

/// The data_type of the C++ type T: float, bf16, fp16 or e4m3.
template <typename T>
inline constexpr data_type type_of = std::is_same_v<T, bf16>   ? data_type::bf16
                                     : std::is_same_v<T, fp16> ? data_type::fp16
                                     : std::is_same_v<T, e4m3> ? data_type::fp8
                                                               : data_type::fp32;

/// Calls function(std::type_identity<T>{}) with the C++ type T of `type`.
template <typename Function>
decltype(auto) with_type(data_type type, Function&& function) {
  switch (type) {
    case data_type::bf16:
      return function(std::type_identity<bf16>{});
    case data_type::fp16:
      return function(std::type_identity<fp16>{});
    case data_type::fp8:
      return function(std::type_identity<e4m3>{});
    default:
      return function(std::type_identity<float>{});
  }
}

}  // namespace attnsim::kernels
