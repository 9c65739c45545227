// How results are written: a table for people, JSON and CSV for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/planner.hpp"
#include "sim/predict.hpp"

namespace attnsim::cli {

enum class output_format { table, json, csv };

/// Throws input_error for anything but table, json and csv.
output_format parse_format(const std::string& text);

/// Grid and, where there are any, degrees: "8x4 U2 T4", with U for Ulysses and T for tensor parallel.
std::string grid_of(const strategy&);

/// The object of the command line's contract: schema, cluster, ranks, ..., times in seconds, sizes in bytes.
nlohmann::ordered_json to_json(const prediction&);

/// Rows of text under a header, columns aligned, numbers to the right.
class text_table {
 public:
  explicit text_table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string to_table(const prediction&);
std::string to_table(const std::vector<prediction>& ranked);
std::string to_csv(const std::vector<prediction>&);

}  // namespace attnsim::cli
