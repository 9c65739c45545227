#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "python/bindings.hpp"

namespace attnsim::python {

std::string text_of(const py::handle& value) {
  if (value.is_none()) return "";
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
  return py::str(value);
}

int ranks_of(const cluster& c, const py::handle& ranks) {
  cli::cluster_flags flags;
  flags.ranks = text_of(ranks);
  return flags.ranks_of(c);
}

py::object frame_of(const py::dict& columns) {
  return py::module_::import("pandas").attr("DataFrame")(columns);
}

}  // namespace attnsim::python

PYBIND11_MODULE(_attnsim, m) {
  using namespace attnsim::python;
  py::register_exception<attnsim::input_error>(m, "InputError", PyExc_ValueError);
  py::register_exception<attnsim::infeasible>(m, "Infeasible", PyExc_ValueError);
  bind_requests(m);
  bind_predictions(m);
  bind_timelines(m);
  bind_calibrations(m);
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
