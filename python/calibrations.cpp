#include "calibrate/calibration.hpp"
#include "calibrate/device_file.hpp"
#include "python/bindings.hpp"

namespace attnsim::python {
namespace {

measurement_set read_set(const py::handle& measured) {
  if (!py::isinstance<py::sequence>(measured) || py::len(measured) != 2)
    throw py::type_error("measurements: expected pairs of a file and its Cluster, not " +
                         py::repr(measured).cast<std::string>());
  const auto pair = measured.cast<py::sequence>();
  const auto path = text_of(pair[0]);
  const py::object on = pair[1];
  return {path, read_measurements(path),
          on.is_none() ? nullptr : &required<asked_cluster>(on, "measurements")};
}

calibration calibrate_from(const py::object& profile, const py::iterable& measured,
                           const py::kwargs& unknown) {
  refuse(unknown, "calibrate");
  const auto device = text_of(profile);
  std::vector<measurement_set> sets;
  for (const auto& one : measured) sets.push_back(read_set(one));
  const py::gil_scoped_release others_may_run;
  try {
    return calibrate(read_device_file(device), sets);
  } catch (const std::invalid_argument& e) {
    throw input_error(asked("device"), device, e.what());
  }
}

}  // namespace

void bind_calibrations(py::module_& m) {
  py::class_<calibration>(m, "Calibration", "A device profile fitted to measurements.")
      .def_readonly("fitted", &calibration::fitted, "A line a parameter: value, points, residuals.")
      .def_readonly("kept", &calibration::kept, "Parameters that keep their prior, and why.")
      .def_readonly("outliers", &calibration::outliers, "Points far off, and by how much.")
      .def_readonly("warnings", &calibration::warnings)
      .def(
          "to_yaml", [](const calibration& c) { return to_yaml(c.profile); },
          "The profile as a file, for Cluster(device=...).");
  m.def(
      "calibrate", &calibrate_from, py::arg("device"), py::arg("measurements"),
      "Fits the profile `device`, a shipped one or a file, to files of attnsim measure, each with "
      "the\nCluster that it was measured on: [('fit.json', cluster), ...].");
}

}  // namespace attnsim::python
