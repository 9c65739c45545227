// Where the best choice changes.
#pragma once

#include <string>

#include "ask/crossing.hpp"
#include "report/page.hpp"

namespace attnsim::report {

section crossovers(const ask::crossing&, const std::string& note);

/// Times by the share of new tokens, and from which share on down queries are better passed than keys.
std::string to_text(const ask::pass_crossing&);

}  // namespace attnsim::report
