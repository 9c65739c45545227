#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "formats/escaped.hpp"
#include "model/printable.hpp"

namespace attnsim::report {

bool table::is_number(std::size_t column) const {
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    const auto& text = rows_[r][column];
    if (text == "-") continue;
    const auto first = text.find_first_not_of("+-");
    return first != std::string::npos && std::isdigit(static_cast<unsigned char>(text[first])) != 0;
  }
  return false;
}

std::string table::str() const {
  auto rows = rows_;
  std::vector<std::size_t> width(rows[0].size());
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      width[i] = std::max(width[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += is_number(i) ? fmt::format("{:>{}}  ", row[i], width[i])
                           : fmt::format("{:<{}}  ", row[i], width[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string table::html() const {
  std::string out = "<table>\n";
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto* tag = r == 0 ? "th" : "td";
    out += r == 0 ? "<thead><tr>" : r == 1 ? "<tbody>\n<tr>" : "<tr>";
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      out += fmt::format("<{}{}>{}</{}>", tag, is_number(i) ? " class=\"number\"" : "",
                         escaped(rows_[r][i]), tag);
    }
    out += r == 0 ? "</tr></thead>\n" : "</tr>\n";
  }
  return out + (empty() ? "</table>\n" : "</tbody></table>\n");
}

}  // namespace attnsim::report
