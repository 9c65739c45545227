#include <fmt/format.h>

#include <sstream>

#include "ask/planner.hpp"
#include "python/figures.hpp"
#include "python/interruptible.hpp"
#include "report/results.hpp"

namespace attnsim::python {
namespace {

py::object dict_of(const prediction& p) {
  return py::module_::import("json").attr("loads")(report::to_json(p).dump());
}

prediction predict_one(const py::object& on, const py::object& attention_layer,
                       const py::object& with, const py::object& ranks, const py::object& pass,
                       const py::object& by, const py::kwargs& unknown) {
  refuse(unknown, "predict");
  const auto& c = required<asked_cluster>(on, "cluster");
  const auto& a = required<attention>(attention_layer, "attention");
  const auto& s = required<wanted_strategy>(with, "strategy");
  const int n = ranks_of(c, ranks);
  ask::question q;
  set(q, "pass", pass);
  set(q, "by", by);
  const py::gil_scoped_release others_may_run;
  return predict(c, a, s.on(c, a, n, q), n, q.pass, q.by);
}

std::vector<std::string> schedules_of(const py::object& names) {
  if (!names.is_none() && text_of(names).empty())
    throw input_error("schedules", text_of(names),
                      "expected names, as attnsim.schedules() lists them");
  std::vector<std::string> found;
  std::istringstream list(text_of(names));
  for (std::string name; std::getline(list, name, ',');) found.push_back(name);
  return found;
}

plan_result plan_all(const py::object& on, const py::object& attention_layer,
                     const py::object& fixed, const py::object& schedules, const py::object& ranks,
                     const py::object& pass, const py::kwargs& unknown) {
  refuse(unknown, "plan");
  const auto& c = required<asked_cluster>(on, "cluster");
  const auto& a = required<attention>(attention_layer, "attention");
  auto q = required<wanted_strategy>(fixed, "strategy").asked;
  set(q, "pass", pass);
  const auto request = ask::plan_of(q, a, ranks_of(c, ranks), schedules_of(schedules));
  return interruptible([&](const std::atomic<bool>& stop) {
    return plan(c, request, [&](auto, auto) {
      if (stop) throw std::runtime_error("stopped");
    });
  });
}

void bind_prediction(py::module_& m) {
  py::class_<pass_prediction> pass(m, "Pass", "One pass of a prediction.");
  bind_figures(pass);
  py::class_<prediction> whole(
      m, "Prediction",
      "Time of a strategy for one attention layer over all its heads, on the slowest rank.");
  bind_figures(whole);
  whole
      .def_property_readonly(
          "strategy", [](const prediction& p) { return wanted_strategy{.chosen = p.chosen}; },
          "for predict and simulate")
      .def_readonly("problem", &prediction::problem, "what was asked")
      .def_property_readonly(
          "pass_", [](const prediction& p) { return name_of(p.pass); },
          "what was asked: forward, backward, both or recompute")
      .def_readonly("passes", &prediction::passes, "in the order in which they run")
      .def("to_dict", &dict_of, "The object that attnsim predict --format json prints.")
      .def("_repr_html_", [](const prediction& p) { return report::ranking_of({p}).html(); })
      .def("__repr__", [](const prediction& p) {
        return fmt::format("Prediction({} {}: {})", p.chosen.schedule, report::grid_of(p.chosen),
                           to_string(p.time));
      });
}

void bind_plan(py::module_& m) {
  py::class_<rejection>(m, "Rejection", "A strategy that cannot run, and why.")
      .def_property_readonly("schedule", [](const rejection& r) { return r.candidate.schedule; })
      .def_property_readonly(
          "grid", [](const rejection& r) { return std::pair(r.candidate.rows, r.candidate.cols); },
          "(rows, columns)")
      .def_readonly("reason", &rejection::reason);
  py::class_<plan_result>(m, "Plan", "Strategies ranked by their simulated time.")
      .def_readonly("problem", &plan_result::problem, "what was asked")
      .def_property_readonly(
          "pass_", [](const plan_result& r) { return name_of(r.pass); },
          "what was asked: forward, backward, both or recompute")
      .def_readonly("candidates", &plan_result::candidates, "Predictions, best first.")
      .def_readonly("rejected", &plan_result::rejected)
      .def_readonly("on_fewer", &plan_result::on_fewer,
                    "The best on one rank, one node, half of all.")
      .def_readonly("considered", &plan_result::considered, "Strategies estimated.")
      .def_readonly("simulated", &plan_result::simulated)
      .def_property_readonly("best", [](const plan_result& r) { return r.candidates.at(0); })
      .def(
          "frame",
          [](const plan_result& r) {
            py::list rows;
            for (const auto& p : r.candidates) rows.append(dict_of(p));
            return py::module_::import("pandas").attr("json_normalize")(rows);
          },
          "A pandas.DataFrame with a row a candidate; columns as in Prediction.to_dict.")
      .def("_repr_html_",
           [](const plan_result& r) { return report::ranking_of(r.candidates).html(); })
      .def("__repr__", [](const plan_result& r) {
        return fmt::format("Plan({} candidates, best {} {})", r.candidates.size(),
                           r.candidates.at(0).chosen.schedule, to_string(r.candidates.at(0).time));
      });
}

}  // namespace

void bind_predictions(py::module_& m) {
  bind_prediction(m);
  bind_plan(m);
  m.def("predict", &predict_one, py::arg("cluster"), py::arg("attention"),
        py::arg("strategy") = wanted_strategy(), py::kw_only(), py::arg("ranks") = py::none(),
        py::arg("pass_") = "both", py::arg("by") = "simulation",
        "Time, traffic and memory of one strategy on the first `ranks` devices (default: all).\n"
        "pass_: forward, backward, both or recompute; by: simulation or analytic.");
  m.def("plan", &plan_all, py::arg("cluster"), py::arg("attention"),
        py::arg("strategy") = wanted_strategy(), py::kw_only(), py::arg("schedules") = py::none(),
        py::arg("ranks") = py::none(), py::arg("pass_") = "both",
        "The best schedules, grids, token layouts and placements, ranked. What `strategy` gives,\n"
        "but for its schedule, is kept; schedules: only these.");
}

}  // namespace attnsim::python
