// Text of others, such as names out of files, made fit for a terminal and for one line.
#pragma once

#include <string>
#include <string_view>

namespace attnsim {

/// Whether all of it is UTF-8 (RFC 3629).
bool is_utf8(std::string_view text);

/// With what a terminal would obey written out: control characters as \n, \t, \x1b, \u009b, marks that turn the direction of
/// writing as \u202e, and bytes that are no UTF-8 as \xff.
std::string printable(std::string_view text);

}  // namespace attnsim
