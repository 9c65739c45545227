// Text as its author meant it, without what terminals, browsers and other systems put around and into it.
#pragma once

#include <string>

namespace attnsim {

/// UTF-8 with lines that end in '\n'. Removed: byte-order marks, zero-width spaces, terminal escapes (colours, underlines,
/// titles: ECMA-48). Replaced: UTF-16 that begins with its mark, "\r\n" and '\r' by '\n', non-breaking spaces by ' '. The
/// number of lines stays.
std::string plain_text(std::string);

}  // namespace attnsim
