// The Python module attnsim._attnsim: what a user sees of it is documented in attnsim/__init__.pyi.
//
// Arguments are read as the flags of the same names (cli/flags.hpp), so that they take the same values and give the same
// messages: input_error and infeasible become attnsim.InputError and attnsim.Infeasible, both ValueErrors.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "cli/flags.hpp"

namespace attnsim::python {

namespace py = pybind11;

/// A strategy as asked for, some of which depends on the mask; or as chosen by a plan or prediction.
struct wanted_strategy {
  cli::strategy_flags flags;
  std::optional<strategy> chosen;

  strategy on(const attention& a) const { return chosen ? *chosen : flags.read(a.mask); }
};

/// As one would type it after a flag; empty for None.
std::string text_of(const py::handle&);

/// All devices for None. Throws infeasible when the cluster has fewer.
int ranks_of(const cluster&, const py::handle& ranks);

/// A pandas.DataFrame.
py::object frame_of(const py::dict& columns);

void bind_requests(py::module_&);
void bind_predictions(py::module_&);
void bind_timelines(py::module_&);
void bind_calibrations(py::module_&);

}  // namespace attnsim::python
