// step(cluster, seq=..., model=..., tp=...): a training step or prefill by the names of its fields (ask/step_question.hpp).
#include <algorithm>

#include "ask/step_figures.hpp"
#include "model/spelling.hpp"
#include "python/figures.hpp"

namespace attnsim::python {
namespace {

std::string keyword_of(std::string_view field) {
  std::string keyword(field);
  std::replace(keyword.begin(), keyword.end(), '-', '_');
  return keyword;
}

void set_step(ask::step_question& q, const std::string& keyword, const py::handle& value) {
  std::vector<std::string> known;
  for (const auto& f : ask::step_fields()) {
    if (f.group == ask::field_group::cluster && f.name != "ranks") continue;  // the cluster's own
    known.push_back(keyword_of(f.name));
    if (known.back() != keyword) continue;
    if (!value.is_none()) ask::set(q, f, text_of(value, f.name == "grid" ? "x" : ","));
    return;
  }
  throw py::type_error("step() has no argument " + keyword + did_you_mean(keyword, known));
}

ask::step_answer step(const py::object& on, const py::kwargs& fields) {
  const auto& c = required<asked_cluster>(on, "cluster");
  ask::step_question q;
  for (const auto& [keyword, value] : fields) set_step(q, keyword.cast<std::string>(), value);
  return ask::answer(q, c);
}

}  // namespace

void bind_steps(py::module_& m) {
  py::class_<ask::step_answer> answer(
      m, "Step", "A predicted training step or prefill, as `attnsim step` prints it.");
  bind_figures(answer);
  m.def("step", &step, py::arg("cluster"),
        "Predicts a model's training step, or with task='prefill' a batch's time to first token. "
        "Keywords are the flags of `attnsim step`: model, seq, tp, cp, pp, dp, shard, recompute "
        "and so on.");
}

}  // namespace attnsim::python
