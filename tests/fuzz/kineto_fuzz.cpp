// Reads the input as a profiler's trace: kernels, or an input_error.
#include <cstdint>
#include <string>

#include "formats/kineto.hpp"
#include "model/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    attnsim::formats::read_kineto({"f", std::string(reinterpret_cast<const char*>(data), size)});
  } catch (const attnsim::input_error&) {
  }
  return 0;
}
