// Published figures and the clusters they were measured on: the files of reproduce/published, in the program's sources
// or in its installation.
//
// A table is a CSV file without quotes: lines that begin with # say where the figures are from, then a header, then rows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/cluster.hpp"

namespace attnsim::reproduce {

/// The path of reproduce/published/`name`. Throws input_error when there is none.
std::string find_published(const std::string& name);

class published_row {
 public:
  published_row(std::map<std::string, std::string, std::less<>> fields, std::string where)
      : fields_(std::move(fields)), where_(std::move(where)) {}

  /// The field in a column. Throws input_error, naming file and line, when there is no such column.
  const std::string& text(std::string_view column) const;
  /// The same, or `otherwise` where there is no such column or nothing in it.
  std::string text_or(std::string_view column, std::string_view otherwise) const;
  /// The same as a number; throws input_error when it is none.
  double number(std::string_view column) const;
  std::int64_t integer(std::string_view column) const;
  const std::string& where() const { return where_; }  ///< FILE:LINE

 private:
  std::map<std::string, std::string, std::less<>> fields_;
  std::string where_;
};

/// Throws input_error, naming file and line, for a row with more or fewer fields than the header.
std::vector<published_row> read_published(const std::string& path);

/// The rows of reproduce/published/NAME.csv.
std::vector<published_row> published(const std::string& name);

/// The shipped cluster in column `cluster`, changed as column `settings` says: "nodes=2;device=b200;node.bandwidth=900
/// GB/s" (nodes and device as --nodes and --device, all else as --set), with `host` as --host.
cluster cluster_of(const published_row&, const std::string& host = "");

}  // namespace attnsim::reproduce
