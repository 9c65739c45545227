// How the solvers refuse what a caller must not give: one line of the parts, as std::invalid_argument.
#pragma once

#include <sstream>
#include <stdexcept>

namespace attnsim {

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

}  // namespace attnsim
