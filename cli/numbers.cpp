#include "cli/numbers.hpp"

#include "cli/flags.hpp"
#include "model/units.hpp"

namespace attnsim::cli {

std::int64_t parse_count(const std::string& flag, const std::string& text, std::int64_t least) {
  return parse_flag(flag, text, [&](const std::string& t) { return parse_whole(t, least); });
}

}  // namespace attnsim::cli
