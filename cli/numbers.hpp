// Whole numbers as people type them: 1048576, 128K, 1M (binary multiples, as token counts are).
#pragma once

#include <cstdint>
#include <string>

namespace attnsim::cli {

/// Throws input_error naming `flag` unless `text` is a whole number of at least `least`.
std::int64_t parse_count(const std::string& flag, const std::string& text, std::int64_t least = 1);

}  // namespace attnsim::cli
