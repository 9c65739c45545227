// A step as people and programs read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ask/step_figures.hpp"
#include "ask/step_plan.hpp"
#include "ask/step_settings.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// "tp 4 cp 8 dp 8", degrees of one left out.
std::string degrees_of(const ask::step_answer&);

/// Where the time goes, a bar a part; memory by kind; what faster attention would give.
std::string to_table(const ask::step_answer&);
nlohmann::ordered_json to_json(const ask::step_answer&);
std::string to_csv(const ask::step_answer&);
page page_of(const cluster&, const ask::step_answer&);

/// The ranking; what was ruled out and why stands below the table, and in JSON.
std::string to_table(const ask::step_plan&);
nlohmann::ordered_json to_json(const ask::step_plan&);
std::string to_csv(const ask::step_plan&);
/// With the best in detail.
page page_of(const cluster&, const ask::step_plan&);

/// A framework's settings, after comments on which candidate they are for and why not for those before.
std::string to_text(const emitted_settings&, std::string_view framework, const ask::step_plan&);

}  // namespace attnsim::report
