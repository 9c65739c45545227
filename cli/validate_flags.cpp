#include "cli/validate_flags.hpp"

#include "cli/numbers.hpp"

namespace attnsim::cli {

nlohmann::ordered_json to_json(const validate::part_time& part) {
  return {{"name", part.name},
          {"predicted_s", part.predicted.value()},
          {"measured_s", part.measured.value()},
          {"error", part.error()}};
}

std::chrono::seconds time_out_of(const validate_flags& flags) {
  return std::chrono::seconds(parse_count("--time-out", flags.time_out));
}

validate::repeats_wanted repeats_of(const validate_flags& flags) {
  if (flags.repeats.empty()) return {};
  return {.runs = static_cast<int>(parse_count("--repeats", flags.repeats))};
}

}  // namespace attnsim::cli
