// The files that every page holds, read when the program was built.
#pragma once

#include <string_view>

namespace attnsim::report {

extern const std::string_view page_template;  ///< page.html, a format string of fmt
extern const std::string_view style;
extern const std::string_view script;
extern const std::string_view d3;  ///< empty: not found
extern const std::string_view d3_licence;

}  // namespace attnsim::report
