// How results are written: a table for people, JSON and CSV for programs.
#pragma once

#include <string>

#include "report/results.hpp"

namespace attnsim::cli {

enum class output_format { table, json, csv };

/// Throws input_error for anything but table, json and csv.
output_format parse_format(const std::string& text);

/// To stdout. On a terminal, unless NO_COLOR is set (no-color.org): the header bold, bars and warnings coloured.
void print_table(const std::string& text);

/// The same with colours.
std::string painted(const std::string& text);

using report::csv_field;
using report::csv_fields;
using report::grid_of;
using report::to_csv;
using report::to_json;
using report::to_table;
using text_table = report::table;

}  // namespace attnsim::cli
