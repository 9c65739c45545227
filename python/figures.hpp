// Figures of an answer (ask/figures.hpp) as properties of its Python class.
#pragma once

#include "ask/figures.hpp"
#include "python/bindings.hpp"

namespace attnsim::python {

/// Prediction.BytesSentPerRank(max, mean) for the figure bytes_sent_per_rank: a named tuple with a field a part.
py::object named_tuple(py::object& answer, std::string_view figure,
                       const std::vector<ask::part>& types);

/// A property for each figure, with its unit in the documentation.
template <typename Answer>
void bind_figures(py::class_<Answer>& to) {
  for (const auto& f : ask::figures<Answer>()) {
    const auto name = std::string(f.name);
    const auto help = std::string(f.help) + (f.unit.empty() ? "" : ", in " + std::string(f.unit));
    std::visit(
        [&]<typename Value>(const Value& type) {
          if constexpr (std::is_same_v<Value, std::vector<ask::part>>) {
            const auto tuple = named_tuple(to, f.name, type);
            to.def_property_readonly(
                name.c_str(),
                [get = f.get, tuple](const Answer& a) {
                  const auto parts = std::get<Value>(get(a));
                  py::list fields;
                  for (const auto& p : parts)
                    fields.append(std::visit([](const auto& v) { return py::cast(v); }, p.is));
                  return tuple(*fields);
                },
                help.c_str());
          } else {
            to.def_property_readonly(
                name.c_str(), [get = f.get](const Answer& a) { return std::get<Value>(get(a)); },
                help.c_str());
          }
        },
        f.get(Answer{}));
  }
}

}  // namespace attnsim::python
