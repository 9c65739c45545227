// Predicted and measured points (ask/part_errors.hpp) as tables, JSON, CSV and parts of pages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ask/contests.hpp"
#include "ask/part_errors.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// A row a part: errors, share of points in their interval, the worst.
table summary_of(const std::vector<compared_point>&);

/// The summary, then each part's points with their intervals.
std::vector<section> sections_of(const std::vector<compared_point>&);

/// What was compared: its points and, of measured schedules, whether the fastest was named right.
struct compared_points {
  std::vector<compared_point> points;
  ask::contests::tally fastest;
};

std::string to_table(const compared_points&);
std::string to_csv(const compared_points&);
nlohmann::ordered_json to_json(const compared_points&);
page page_of(const compared_points&, const std::string& cluster);

}  // namespace attnsim::report
