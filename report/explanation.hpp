// A plan explained, for people.
#pragma once

#include <string>

#include "ask/explain.hpp"
#include "ask/frameworks.hpp"

namespace attnsim::report {

/// Tables of what each candidate lacks, of what frameworks can run and of what was rejected; the best on fewer ranks.
std::string to_text(const ask::explanation&, const plan_result&, const cluster&);

/// Settings for a framework, with comments that say which candidate they are of, and why not an earlier one.
std::string to_text(const emitted_settings&, std::string_view framework, const plan_result&);

}  // namespace attnsim::report
