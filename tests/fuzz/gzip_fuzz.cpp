// Unpacks the input as gzip, its magic put before it, and cleans what comes out: text, or an input_error.
#include <cstdint>
#include <string>

#include "formats/gzip.hpp"
#include "model/error.hpp"
#include "model/plain_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  attnsim::plain_text(bytes);
  try {
    attnsim::plain_text(attnsim::formats::unpacked("\x1f\x8b" + bytes, "f"));
  } catch (const attnsim::input_error&) {
  }
  return 0;
}
