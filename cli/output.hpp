// How results are written: a table for people, JSON and CSV for programs.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "report/csv.hpp"
#include "report/dynamic_group_views.hpp"
#include "report/layer_plan_views.hpp"
#include "report/part_views.hpp"
#include "report/results.hpp"
#include "report/search_views.hpp"
#include "report/step_views.hpp"
#include "report/what_if_views.hpp"

namespace attnsim::cli {

enum class output_format { table, json, csv };

/// Throws input_error for anything but table, json and csv.
output_format parse_format(const std::string& text);

/// To stdout. On a terminal, unless NO_COLOR is set (no-color.org): the header bold, bars and warnings coloured.
void print_table(const std::string& text);

/// To stdout, with a line an element; without an indent, all on one. Bytes that are no UTF-8, as a file's name may have, become
/// U+FFFD.
void print_json(const nlohmann::ordered_json&, int indent = 2);

/// The same table with colours.
std::string painted(const std::string& text);

/// Any result that report/ can write.
template <typename Result>
void print(const Result& result, output_format format) {
  switch (format) {
    case output_format::table:
      return print_table(report::to_table(result));
    case output_format::json:
      return print_json(report::to_json(result));
    case output_format::csv:
      return fmt::print("{}", report::to_csv(result));
  }
}

using report::csv_line;
using report::grid_of;
using report::to_csv;
using report::to_json;
using report::to_table;
using text_table = report::table;

}  // namespace attnsim::cli
