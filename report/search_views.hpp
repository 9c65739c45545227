// What a search found beside the best published schedule, as people and programs read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ask/search.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// schema, published, found, gain, limit_s, seed, evaluated.
nlohmann::ordered_json to_json(const search_result&);
/// Both schedules ranked, what was found in full, and why it wins.
std::string to_table(const search_result&);
std::string to_csv(const search_result&);
/// What was found in detail, beside the best published one.
page page_of(const cluster&, const search_result&);

/// "19.3 % faster: exposed communication 4.1 ms instead of 9.8 ms".
std::string why_it_wins(const search_result&);

}  // namespace attnsim::report
