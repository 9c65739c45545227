// Text as XML, SVG and HTML hold it.
#pragma once

#include <string>
#include <string_view>

namespace attnsim {

/// Between tags or in a quoted attribute; control characters, which XML has no way to hold, become '?'.
std::string escaped(std::string_view text);

}  // namespace attnsim
