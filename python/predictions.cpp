#include <fmt/format.h>

#include "ask/planner.hpp"
#include "python/figures.hpp"
#include "report/results.hpp"

namespace attnsim::python {
namespace {

py::object dict_of(const prediction& p) {
  return py::module_::import("json").attr("loads")(report::to_json(p).dump());
}

ask::question with_pass(ask::question q, const std::string& pass) {
  ask::set(q, "pass", pass);
  return q;
}

prediction predict_one(const cluster& c, const attention& a, const wanted_strategy& s,
                       const py::object& ranks, const std::string& pass, const std::string& by) {
  const int n = ranks_of(c, ranks);
  const py::gil_scoped_release others_may_run;
  auto q = with_pass({}, pass);
  ask::set(q, "by", by);
  return predict(c, a, s.on(c, a, n, q), n, q.pass, q.by);
}

plan_result plan_all(const cluster& c, const attention& a, const wanted_strategy& fixed,
                     std::vector<std::string> schedules, const py::object& ranks,
                     const std::string& pass) {
  const int n = ranks_of(c, ranks);
  const py::gil_scoped_release others_may_run;
  const auto q = with_pass(fixed.asked, pass);
  return plan(c, ask::plan_of(q, a, n, std::move(schedules)));
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
      .def_readonly("passes", &prediction::passes, "in the order in which they run")
      .def("to_dict", &dict_of, "The object that attnsim predict --format json prints.")
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
        py::arg("strategy") = wanted_strategy(), py::kw_only(),
        py::arg("schedules") = std::vector<std::string>(), py::arg("ranks") = py::none(),
        py::arg("pass_") = "both",
        "The best schedules, grids, token layouts and placements, ranked. What `strategy` gives,\n"
        "but for its schedule, is kept; schedules: only these.");
}

}  // namespace attnsim::python
