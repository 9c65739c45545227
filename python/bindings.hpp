// The Python module attnsim._attnsim: what a user sees of it is documented in attnsim/__init__.pyi.
//
// Arguments are read as the fields of a question (ask/question.hpp), so that they take the same values and give the same
// messages as elsewhere: input_error and infeasible become attnsim.InputError and attnsim.Infeasible, both ValueErrors,
// that begin with the keyword.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "ask/fastest_tokens.hpp"

namespace attnsim::python {

namespace py = pybind11;

/// A cluster, and how it was asked for.
struct asked_cluster : cluster {
  ask::question asked;
  bool is_text = false;  ///< `asked.cluster` is a cluster file itself, not its name
};

/// A strategy as asked for, some of which depends on the mask; or as chosen by a plan or prediction.
struct wanted_strategy {
  ask::question asked;
  std::optional<strategy> chosen;

  strategy on(const attention& a) const { return chosen ? *chosen : ask::strategy_of(asked, a); }

  /// For the pass and the way of predicting that `how` asks for.
  strategy on(const cluster& c, const attention& a, int ranks, const ask::question& how) const {
    if (chosen) return *chosen;
    auto q = asked;
    q.pass = how.pass;
    q.by = how.by;
    shared_work work(c);
    return ask::with_fastest_tokens(q, a, ranks, work);
  }
};

/// As one would write it; empty for None. Lists and tuples with `between` between their items.
std::string text_of(const py::handle&, const char* between = ",");

/// Reads a keyword's value into the field of that name; None leaves it as it is.
void set(ask::question&, const char* field, const py::handle& value);

/// All devices for None. Throws infeasible when the cluster has fewer.
int ranks_of(const cluster&, const py::handle& ranks);

/// An argument of a class of ours. Throws TypeError that names the keyword.
template <typename T>
const T& required(const py::object& value, const char* keyword) {
  if (py::isinstance<T>(value)) return value.cast<const T&>();
  throw py::type_error(std::string(keyword) + ": expected an attnsim." +
                       py::type::of<T>().attr("__name__").template cast<std::string>() + ", not " +
                       py::repr(value).cast<std::string>());
}

/// Throws TypeError for keywords that a function or class of the module does not have, with the one that may be meant.
void refuse(const py::kwargs& unknown, const char* function);

/// A pandas.DataFrame.
py::object frame_of(const py::dict& columns);

void bind_requests(py::module_&);
void bind_predictions(py::module_&);
void bind_timelines(py::module_&);
void bind_calibrations(py::module_&);
void bind_steps(py::module_&);

}  // namespace attnsim::python
