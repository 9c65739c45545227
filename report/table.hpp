// Rows of text under a header: as aligned columns for terminals, and as HTML.
#pragma once

#include <string>
#include <vector>

namespace attnsim::report {

class table {
 public:
  table() = default;
  explicit table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() < 2; }

  /// Columns aligned, numbers to the right.
  std::string str() const;
  /// A <table>, its text escaped.
  std::string html() const;

 private:
  /// Judged by the first row that has something else than "-".
  bool is_number(std::size_t column) const;

  std::vector<std::vector<std::string>> rows_;
};

}  // namespace attnsim::report
