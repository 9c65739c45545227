#include <fmt/format.h>

#include "ask/planner.hpp"
#include "python/bindings.hpp"
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
  return predict(c, a, s.on(a), n, q.pass, q.by);
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
  using p = prediction;
  py::class_<pass_prediction>(m, "Pass", "One pass of a prediction.")
      .def_property_readonly("name", [](const pass_prediction& x) { return name_of(x.pass); })
      .def_property_readonly("time_s", [](const pass_prediction& x) { return x.time.value(); })
      .def_property_readonly("compute_s",
                             [](const pass_prediction& x) { return x.compute.value(); })
      .def_property_readonly(
          "exposed_communication_s",
          [](const pass_prediction& x) { return x.exposed_communication.value(); })
      .def_property_readonly("host_s", [](const pass_prediction& x) { return x.host.value(); });
  py::class_<p>(
      m, "Prediction",
      "Time of a strategy for one attention layer over all its heads, on the slowest rank.")
      .def_readonly("cluster", &p::cluster)
      .def_readonly("ranks", &p::ranks)
      .def_property_readonly("schedule", [](const p& x) { return x.chosen.schedule; })
      .def_property_readonly(
          "grid", [](const p& x) { return std::pair(x.chosen.rows, x.chosen.cols); },
          "(rows, columns)")
      .def_property_readonly("ulysses", [](const p& x) { return x.chosen.ulysses; })
      .def_property_readonly("tp", [](const p& x) { return x.chosen.tensor_parallel; })
      .def_readonly("dp", &p::data_parallel, "Groups of ranks, each with its part of the batch.")
      .def_property_readonly("tokens", [](const p& x) { return name_of(x.chosen.tokens); })
      .def_property_readonly("placement", [](const p& x) { return x.chosen.placement; })
      .def_property_readonly("kv_order", [](const p& x) { return name_of(x.chosen.order); })
      .def_property_readonly(
          "strategy", [](const p& x) { return wanted_strategy{.chosen = x.chosen}; },
          "For predict and simulate.")
      .def_readonly("passes", &p::passes, "In the order in which they run.")
      .def_property_readonly("time_s", [](const p& x) { return x.time.value(); })
      .def_property_readonly(
          "time_interval_s", [](const p& x) { return std::pair(x.low.value(), x.high.value()); },
          "(low, high) by the profile's stated uncertainties.")
      .def_property_readonly("compute_s", [](const p& x) { return x.compute.value(); })
      .def_property_readonly(
          "exposed_communication_s", [](const p& x) { return x.exposed_communication.value(); },
          "The device waits for data.")
      .def_property_readonly(
          "host_s", [](const p& x) { return x.host.value(); },
          "What the host takes to launch it all.")
      .def_property_readonly(
          "bytes_sent_max", [](const p& x) { return x.most_bytes_sent.value(); }, "By any rank.")
      .def_readonly("bytes_sent_mean", &p::mean_bytes_sent, "By a rank.")
      .def_property_readonly("peak_memory_bytes", [](const p& x) { return x.peak_memory.value(); })
      .def_property_readonly(
          "tflops_per_device", [](const p& x) { return x.rate_per_device.value() / 1e12; },
          "Useful operations.")
      .def_property_readonly(
          "bottleneck",
          [](const p& x) {
            return py::make_tuple(x.bottleneck.kind, x.bottleneck.name, x.bottleneck.share);
          },
          "(kind, name, share of the time in which it is busy)")
      .def_readonly("feasible", &p::feasible, "It fits the device's memory.")
      .def_readonly("warnings", &p::warnings)
      .def("to_dict", &dict_of, "The object that attnsim predict --format json prints.")
      .def("__repr__", [](const p& x) {
        return fmt::format("Prediction({} {}: {})", x.chosen.schedule, report::grid_of(x.chosen),
                           to_string(x.time));
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
