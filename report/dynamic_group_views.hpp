// A batch of documents on groups of several sizes (ask/dynamic_groups.hpp): as a table, JSON and CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ask/dynamic_groups.hpp"

namespace attnsim::report {

/// A row for groups of one size and one for those of several, then how many groups have which size.
std::string to_table(const ask::grouped_batch&);
nlohmann::ordered_json to_json(const ask::grouped_batch&);
std::string to_csv(const ask::grouped_batch&);

}  // namespace attnsim::report
