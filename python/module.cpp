#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "model/error.hpp"
#include "model/printable.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/spelling.hpp"
#include "python/bindings.hpp"

namespace attnsim::python {

std::string text_of(const py::handle& value, const char* between) {
  if (value.is_none()) return "";
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
  if (py::isinstance<py::str>(value) || !py::isinstance<py::iterable>(value)) return py::str(value);
  std::string all;
  for (const auto& item : value) all += (all.empty() ? "" : between) + text_of(item, between);
  return all;
}

int ranks_of(const cluster& c, const py::handle& ranks) {
  ask::question q;
  set(q, "ranks", ranks);
  return ask::ranks_of(q, c);
}

void set(ask::question& q, const char* field, const py::handle& value) {
  if (!value.is_none()) ask::set(q, field, text_of(value));
}

/// The names before colons in the first line of its documentation: "predict(cluster: object, ...".
std::vector<std::string> keywords_of(const char* function) {
  py::object documented = py::module_::import("attnsim._attnsim").attr(function);
  if (py::isinstance<py::type>(documented)) documented = documented.attr("__init__");
  const std::string text = py::str(documented.attr("__doc__"));
  const auto line = text.substr(0, text.find('\n'));
  const std::regex keyword(R"((\w+): )");
  std::vector<std::string> names;
  for (std::sregex_iterator k(line.begin(), line.end(), keyword), end; k != end; ++k)
    names.push_back(k->str(1));
  std::erase(names, "self");
  return names;
}

void refuse(const py::kwargs& unknown, const char* function) {
  if (unknown.empty()) return;
  const std::string name = py::str(unknown.begin()->first);
  throw py::type_error(fmt::format("{}() has no argument {}{}", function, name,
                                   did_you_mean(name, keywords_of(function))));
}

namespace {

/// A field's keyword has an underscore where the field's name has a dash; pass is a word of the language.
template <typename Error>
std::string worded(const Error& e) {
  auto keyword = e.field();
  std::replace(keyword.begin(), keyword.end(), '-', '_');
  if (keyword == "pass") keyword = "pass_";
  return printable(e.about(keyword).text);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as pybind11 calls it
void translate(std::exception_ptr thrown) {
  const auto raise = [](const char* type, const std::string& message) {
    PyErr_SetString(py::module_::import("attnsim._attnsim").attr(type).ptr(), message.c_str());
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const input_error& e) {
    raise("InputError", worded(e));
  } catch (const infeasible& e) {
    raise("Infeasible", worded(e));
  }
}

}  // namespace

py::object frame_of(const py::dict& columns) {
  return py::module_::import("pandas").attr("DataFrame")(columns);
}

}  // namespace attnsim::python

PYBIND11_MODULE(_attnsim, m) {
  using namespace attnsim::python;
  const py::exception<attnsim::input_error> input_error(m, "InputError", PyExc_ValueError);
  const py::exception<attnsim::infeasible> infeasible(m, "Infeasible", PyExc_ValueError);
  py::register_exception_translator(&translate);
  bind_requests(m);
  bind_predictions(m);
  bind_timelines(m);
  bind_calibrations(m);
  bind_steps(m);
  m.attr("__version__") = ATTNSIM_VERSION;
  m.def("clusters", &attnsim::shipped_clusters, "Names of the shipped clusters.");
  m.def("devices", &attnsim::shipped_devices, "Names of the shipped device profiles.");
  m.def("hosts", &attnsim::shipped_hosts, "Names of the shipped host profiles.");
  m.def(
      "schedules",
      [] {
        std::vector<std::string> names;
        for (const auto& a : attnsim::algorithms()) names.emplace_back(a.name);
        return names;
      },
      "Names of the schedules.");
}
