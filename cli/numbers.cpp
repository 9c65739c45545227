#include "cli/numbers.hpp"

#include <fmt/format.h>

#include <charconv>

#include "model/error.hpp"

namespace attnsim::cli {

std::int64_t parse_count(const std::string& flag, const std::string& text, std::int64_t least) {
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
    throw input_error(
        flag, text,
        fmt::format("expected a whole number of at least {}, such as 8, 128K or 1M", least));
  }
  return value * factor;
}

}  // namespace attnsim::cli
