#include "reproduce/published.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/error.hpp"

namespace attnsim::reproduce {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  if (line.ends_with(separator)) fields.emplace_back();
  return fields;
}

template <typename Number>
Number parse_number(const std::string& text, const std::string& where, std::string_view column) {
  Number value{};
  const char* const end_of_text = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), end_of_text, value);
  if (error != std::errc{} || end != end_of_text)
    throw input_error(fmt::format("{}: {}", where, column), text, "expected a number");
  return value;
}

}  // namespace

std::string find_published(const std::string& name) {
  for (const std::filesystem::path folder :
       {ATTNSIM_SOURCE_PUBLISHED, ATTNSIM_INSTALLED_PUBLISHED}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(folder / name, ignored)) return (folder / name).string();
  }
  throw input_error("published figures", name,
                    "expected a file of " ATTNSIM_INSTALLED_PUBLISHED "; is attnsim installed?");
}

const std::string& published_row::text(std::string_view column) const {
  const auto found = fields_.find(column);
  if (found == fields_.end())
    throw input_error(where_, std::string(column), "expected a column of the table");
  return found->second;
}

std::string published_row::text_or(std::string_view column, std::string_view otherwise) const {
  const auto found = fields_.find(column);
  return found == fields_.end() || found->second.empty() ? std::string(otherwise) : found->second;
}

double published_row::number(std::string_view column) const {
  return parse_number<double>(text(column), where_, column);
}

std::int64_t published_row::integer(std::string_view column) const {
  return parse_number<std::int64_t>(text(column), where_, column);
}

std::vector<published_row> read_published(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw input_error("table", path, "expected a file that can be read");
  std::vector<std::string> header;
  std::vector<published_row> rows;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const auto fields = split(line, ',');
    if (header.empty()) {
      header = fields;
      continue;
    }
    const auto where = fmt::format("{}:{}", path, number);
    if (fields.size() != header.size())
      throw input_error(where, line, fmt::format("expected {} fields", header.size()));
    std::map<std::string, std::string, std::less<>> row;
    for (std::size_t i = 0; i < fields.size(); ++i) row.emplace(header[i], fields[i]);
    rows.emplace_back(std::move(row), where);
  }
  return rows;
}

std::vector<published_row> published(const std::string& name) {
  return read_published(find_published(name + ".csv"));
}

cluster cluster_of(const published_row& row, const std::string& host) {
  cluster_overrides overrides{.host = host};
  for (const auto& setting : split(row.text("settings"), ';')) {
    const auto equals = setting.find('=');
    const auto key = setting.substr(0, equals), value = setting.substr(equals + 1);
    if (key == "nodes") {
      overrides.nodes = parse_number<std::int64_t>(value, row.where(), "settings");
    } else if (key == "device") {
      overrides.device = value;
    } else {
      overrides.set.emplace_back(key, value);
    }
  }
  return read_cluster(row.text("cluster"), overrides);
}

}  // namespace attnsim::reproduce
