// Reads the input, after a brace, as a model's config.json: attention of every kind of layer, or an input_error.
#include <cstdint>
#include <string>

#include "model/attention/model_shapes.hpp"
#include "model/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = "{" + std::string(reinterpret_cast<const char*>(data), size);
  for (const auto layer : {attnsim::layer_kind::full, attnsim::layer_kind::window}) {
    try {
      attnsim::attention a;
      attnsim::use_model(a, text, layer);
    } catch (const attnsim::input_error&) {
    }
  }
  return 0;
}
