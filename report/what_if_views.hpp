// What if one value were another (ask/what_if.hpp): as a table, JSON, CSV and a page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ask/what_if.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// A row a value, then where the best changes.
std::string to_table(const ask::what_if_answer&);
nlohmann::ordered_json to_json(const ask::what_if_answer&);
/// A row a value and schedule.
std::string to_csv(const ask::what_if_answer&);
page page_of(const ask::what_if_answer&);

}  // namespace attnsim::report
