// Reads the input as a file of the importer ATTNSIM_IMPORTER and makes a cluster of it. Whatever the
// bytes, the outcome is a cluster or an input_error. Numbers of many digits are left to the tests of
// the limits: they cost time, not safety.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>

#include "formats/cluster_file.hpp"
#include "formats/importers/table.hpp"
#include "model/plain_text.hpp"

namespace attnsim::formats {
namespace {

constexpr std::size_t most_parts = 300, most_cables = 2000;
constexpr int most_digits = 3;

#ifdef ATTNSIM_COUNTS_INSIDE
constexpr bool counts_inside = true;
#else
constexpr bool counts_inside = false;
#endif

bool has_long_number(const std::string& text) {
  int digits = 0;
  return std::any_of(text.begin(), text.end(), [&](unsigned char c) {
    digits = std::isdigit(c) ? digits + 1 : 0;
    return digits > most_digits;
  });
}

void run(const std::string& text) {
  if (counts_inside && has_long_number(text)) return;
  try {
    const importer& i = importers::ATTNSIM_IMPORTER;
    i.recognises(text);
    auto t = read_topology({"f", plain_text(text)}, {}, std::string(i.name));
    if (t.parts.size() > most_parts || t.cables.size() > most_cables) return;
    write_cluster_file(combine({std::move(t)}, {}), {.name = "c"});
  } catch (const input_error&) {
  }
}

}  // namespace
}  // namespace attnsim::formats

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attnsim::formats::run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
