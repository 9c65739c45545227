// Reads the input as a log of nccl-tests and as a table: rows, or an input_error.
#include <cstdint>
#include <string>

#include "calibrate/nccl_tests.hpp"
#include "model/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string name : {"all_reduce.log", "f.csv"}) {
    try {
      attnsim::read_nccl_tests(name, text);
    } catch (const attnsim::input_error&) {
    }
  }
  return 0;
}
