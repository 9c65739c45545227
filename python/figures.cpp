#include "python/figures.hpp"

#include <cctype>

namespace attnsim::python {
namespace {

/// "bytes_sent_per_rank" as "BytesSentPerRank".
std::string class_name(std::string_view figure) {
  std::string name;
  bool begins = true;
  for (const char c : figure) {
    if (c != '_') name += begins ? static_cast<char>(std::toupper(c)) : c;
    begins = c == '_';
  }
  return name;
}

py::object type_of(const ask::part& p) {
  return py::type::of(std::visit([](const auto& v) -> py::object { return py::cast(v); }, p.is));
}

}  // namespace

py::object named_tuple(py::object& answer, std::string_view figure,
                       const std::vector<ask::part>& types) {
  py::list fields;
  for (const auto& p : types) fields.append(py::make_tuple(p.name, type_of(p)));
  const auto name = class_name(figure);
  auto type = py::module_::import("typing").attr("NamedTuple")(name, fields);
  type.attr("__module__") = answer.attr("__module__");
  type.attr("__qualname__") = py::str("{}.{}").format(answer.attr("__qualname__"), name);
  answer.attr(name.c_str()) = type;
  return type;
}

}  // namespace attnsim::python
