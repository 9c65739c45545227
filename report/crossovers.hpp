// Where the best choice changes.
#pragma once

#include <string>

#include "ask/crossing.hpp"
#include "report/page.hpp"

namespace attnsim::report {

section crossovers(const ask::crossing&, const std::string& note);

}  // namespace attnsim::report
