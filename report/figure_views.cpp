#include "report/figure_views.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/units.hpp"

namespace attnsim::report {
namespace {

using ask::part;
using nlohmann::ordered_json;

template <typename T>
ordered_json json_of(const T& v) {
  return v;
}
ordered_json json_of(const std::vector<part>& parts) {
  auto object = ordered_json::object();
  for (const auto& p : parts)
    object[std::string(p.name)] = std::visit([](const auto& v) { return json_of(v); }, p.is);
  return object;
}

std::string text(double number, std::string_view unit) {
  if (unit == "s") return to_string(seconds(number));
  if (unit == "TFLOP/s") return to_string(flop_rate(number * 1e12));
  return fmt::format("{:.4g}", number);
}
std::string text(std::int64_t whole, std::string_view unit) {
  return unit == "bytes" ? to_string(byte_count(whole)) : fmt::format("{}", whole);
}
std::string text(const std::string& name, std::string_view) {
  return name;
}
std::string text(bool is, std::string_view) {
  return is ? "yes" : "no";
}
template <typename T>
std::string text(const std::pair<T, T>& pair, std::string_view unit) {
  return fmt::format("{} to {}", text(pair.first, unit), text(pair.second, unit));
}
std::string text(const std::vector<part>& parts, std::string_view unit) {
  return std::visit([&](const auto& v) { return text(v, unit); }, parts.front().is);
}
template <typename T>
std::string text(const std::vector<T>& list, std::string_view) {
  return fmt::format("{}", fmt::join(list, "; "));
}

std::string kind(bool) {
  return "true or false";
}
std::string kind(std::int64_t) {
  return "whole number";
}
std::string kind(double) {
  return "number";
}
std::string kind(const std::string&) {
  return "text";
}
template <typename T>
std::string kind(const std::pair<T, T>& pair) {
  return fmt::format("[{}, {}]", kind(pair.first), kind(pair.second));
}
std::string kind(const std::vector<part>& parts) {
  std::vector<std::string> list;
  for (const auto& p : parts) {
    const auto of = std::visit([](const auto& v) { return kind(v); }, p.is);
    list.push_back(fmt::format("{}: {}", p.name, of));
  }
  return fmt::format("{{{}}}", fmt::join(list, ", "));
}
std::string kind(const std::vector<std::string>&) {
  return "list of texts";
}
std::string kind(const std::vector<std::int64_t>&) {
  return "list of whole numbers";
}

bool is_list(const ask::value& v) {
  return std::holds_alternative<std::vector<std::string>>(v) ||
         std::holds_alternative<std::vector<std::int64_t>>(v);
}

}  // namespace

ordered_json to_json(const ask::value& v) {
  return std::visit([](const auto& x) { return json_of(x); }, v);
}

std::string text_of(const ask::value& v, std::string_view unit) {
  return std::visit([&](const auto& x) { return text(x, unit); }, v);
}

csv_columns columns_of(std::string_view name, const ask::value& v) {
  csv_columns columns;
  if (is_list(v)) return columns;
  const auto add = [&](std::string column, const ordered_json& field) {
    columns.emplace_back(std::move(column),
                         field.is_string() ? field.get<std::string>() : field.dump());
  };
  const auto json = to_json(v);
  if (!json.is_structured()) {
    add(std::string(name), json);
    return columns;
  }
  for (const auto& [part, field] : json.items()) add(fmt::format("{}.{}", name, part), field);
  return columns;
}

std::string kind_of(const ask::value& v) {
  return std::visit([](const auto& x) { return kind(x); }, v);
}

}  // namespace attnsim::report
