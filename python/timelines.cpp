#include <pybind11/numpy.h>

#include <algorithm>

#include "ask/predicted_run.hpp"
#include "python/bindings.hpp"

namespace attnsim::python {
namespace {

struct simulation {
  const cluster* on = nullptr;
  std::vector<ask::recorded_pass> passes;

  seconds duration() const { return passes.back().start + passes.back().times.duration(); }
};

/// A column of a frame, filled row by row.
template <typename T>
class column {
 public:
  void add(T value) { values_.push_back(std::move(value)); }
  py::object take() const {
    if constexpr (std::is_arithmetic_v<T>) {
      return py::array_t<T>(static_cast<py::ssize_t>(values_.size()), values_.data());
    } else {
      return py::cast(values_);
    }
  }

 private:
  std::vector<T> values_;
};

using text_column = column<std::string>;
using numbers = column<double>;
using counts = column<std::int64_t>;

std::int64_t alike(const timeline& t, std::size_t rank_class) {
  return std::count(t.class_of.begin(), t.class_of.end(), static_cast<int>(rank_class));
}

std::string names_of(const operands& list) {
  std::string text;
  for (const auto& o : list) text += (text.empty() ? "" : " ") + std::string(name_of(o.what));
  return text;
}

py::object operations_of(const simulation& s) {
  text_column pass, stream, operation, reads, writes;
  counts rank, ranks_alike;
  numbers start, end;
  for (const auto& [run, program, times, offset] : s.passes) {
    for (std::size_t c = 0; c < times.ranks.size(); ++c) {
      for (const auto& i : times.ranks[c].intervals) {
        const auto& op = program.program[i.operation];
        pass.add(std::string(name_of(program.pass)));
        rank.add(times.ranks[c].rank);
        ranks_alike.add(alike(times, c));
        stream.add(program.streams[static_cast<std::size_t>(op.stream)]);
        operation.add(std::string(name_of(op.kind)));
        reads.add(names_of(op.reads));
        writes.add(names_of(op.writes));
        start.add((offset + i.start).value());
        end.add((offset + i.end).value());
      }
    }
  }
  py::dict columns;
  columns["pass"] = pass.take();
  columns["rank"] = rank.take();
  columns["ranks_alike"] = ranks_alike.take();
  columns["stream"] = stream.take();
  columns["operation"] = operation.take();
  columns["reads"] = reads.take();
  columns["writes"] = writes.take();
  columns["start_s"] = start.take();
  columns["end_s"] = end.take();
  return frame_of(columns);
}

py::object rank_times_of(const simulation& s) {
  text_column pass;
  counts rank, ranks_alike;
  numbers end, compute, exposed, sent;
  for (const auto& [run, program, times, offset] : s.passes) {
    for (std::size_t c = 0; c < times.ranks.size(); ++c) {
      const auto& r = times.ranks[c];
      pass.add(std::string(name_of(program.pass)));
      rank.add(r.rank);
      ranks_alike.add(alike(times, c));
      end.add((offset + r.end).value());
      compute.add(r.compute.value());
      exposed.add(r.exposed_communication().value());
      sent.add(r.bytes_sent);
    }
  }
  py::dict columns;
  columns["pass"] = pass.take();
  columns["rank"] = rank.take();
  columns["ranks_alike"] = ranks_alike.take();
  columns["end_s"] = end.take();
  columns["compute_s"] = compute.take();
  columns["exposed_communication_s"] = exposed.take();
  columns["bytes_sent"] = sent.take();
  return frame_of(columns);
}

py::object links_of(const simulation& s) {
  text_column pass, name, kind;
  counts links_alike;
  numbers bytes, utilisation;
  for (const auto& [run, program, times, offset] : s.passes) {
    for (const auto& l : times.links) {
      pass.add(std::string(name_of(program.pass)));
      name.add(s.on->network.name(l.link, "->"));
      kind.add(std::string(name_of(s.on->network.links()[l.link].kind)));
      links_alike.add(static_cast<std::int64_t>(l.links));
      bytes.add(l.bytes);
      utilisation.add(l.utilisation);
    }
  }
  py::dict columns;
  columns["pass"] = pass.take();
  columns["link"] = name.take();
  columns["kind"] = kind.take();
  columns["links_alike"] = links_alike.take();
  columns["bytes"] = bytes.take();
  columns["utilisation"] = utilisation.take();
  return frame_of(columns);
}

py::object loads_of(const simulation& s) {
  text_column name;
  numbers since, rate;
  for (const auto& [run, program, times, offset] : s.passes) {
    for (const auto& l : times.links) {
      for (const auto& change : l.samples) {
        name.add(s.on->network.name(l.link, "->"));
        since.add((offset + change.since).value());
        rate.add(change.rate);
      }
    }
  }
  py::dict columns;
  columns["link"] = name.take();
  columns["since_s"] = since.take();
  columns["bytes_per_s"] = rate.take();
  return frame_of(columns);
}

simulation simulate_all(const py::object& on, const py::object& attention_layer,
                        const py::object& with, const py::object& ranks, const py::object& pass,
                        const py::kwargs& unknown) {
  refuse(unknown, "simulate");
  const auto& c = required<asked_cluster>(on, "cluster");
  const auto& a = required<attention>(attention_layer, "attention");
  const auto& s = required<wanted_strategy>(with, "strategy");
  const int n = ranks_of(c, ranks);
  ask::question q;
  set(q, "pass", pass);
  const py::gil_scoped_release others_may_run;
  ask::predicted_run run(c, a, s.on(c, a, n, q), n, q.pass, prediction_method::simulation,
                         ask::recording::loads);
  return {&c, run.passes()};
}

}  // namespace

void bind_timelines(py::module_& m) {
  py::class_<simulation>(
      m, "Timeline",
      "What happened when. Frames are pandas.DataFrames; times are in seconds from "
      "the\nstart of the first pass. Of ranks and links that behave alike one is "
      "listed.")
      .def_property_readonly("duration_s", [](const simulation& s) { return s.duration().value(); })
      .def("operations", &operations_of,
           "A row an operation of a rank: pass, rank, ranks_alike, stream, operation, reads,\n"
           "writes, start_s, end_s.")
      .def("ranks", &rank_times_of,
           "A row a rank and pass: rank, ranks_alike, end_s, compute_s,\n"
           "exposed_communication_s, bytes_sent.")
      .def(
          "links", &links_of,
          "A row a link that carried anything, and pass, the most utilised first: link, kind,\n"
          "links_alike, bytes (of each, with the protocol's), utilisation (share of its capacity).")
      .def("loads", &loads_of,
           "A row a change of a link's load: link, since_s, bytes_per_s from then on.")
      .def("__repr__",
           [](const simulation& s) { return "Timeline(" + to_string(s.duration()) + ")"; });
  m.def("simulate", &simulate_all, py::keep_alive<0, 1>(), py::arg("cluster"), py::arg("attention"),
        py::arg("strategy") = wanted_strategy(), py::kw_only(), py::arg("ranks") = py::none(),
        py::arg("pass_") = "both",
        "The timeline that predict's times are of: every operation of every rank, every link.");
}

}  // namespace attnsim::python
