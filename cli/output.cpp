#include "cli/output.hpp"

#include "model/error.hpp"

namespace attnsim::cli {

output_format parse_format(const std::string& text) {
  if (text == "table") return output_format::table;
  if (text == "json") return output_format::json;
  if (text == "csv") return output_format::csv;
  throw input_error("--format", text, "expected one of: table, json, csv");
}

}  // namespace attnsim::cli
