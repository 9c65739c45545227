#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "python/figures.hpp"

namespace attnsim::python {
namespace {

cluster_overrides overrides_of(const py::object& nodes, const py::object& device,
                               const py::object& host, const py::dict& set) {
  ask::question q;
  python::set(q, "nodes", nodes);
  python::set(q, "device", device);
  python::set(q, "host", host);
  for (const auto& [key, value] : set) q.overrides.set.emplace_back(text_of(key), text_of(value));
  return q.overrides;
}

void bind_cluster(py::module_& m) {
  py::class_<cluster>(m, "Cluster",
                      "Devices in nodes and the network that joins them, from a cluster file.")
      .def(py::init([](const py::object& name, const py::object& nodes, const py::object& device,
                       const py::object& host, const py::dict& set) {
             return std::make_unique<cluster>(
                 read_cluster(text_of(name), overrides_of(nodes, device, host, set)));
           }),
           py::arg("name"), py::kw_only(), py::arg("nodes") = py::none(),
           py::arg("device") = py::none(), py::arg("host") = py::none(),
           py::arg("set") = py::dict(),
           "name: a shipped cluster (clusters()) or a file. host: what launches operations "
           "(hosts());\n"
           "without one launches take no time. set: keys of the file to override, by path, as\n"
           "{'nics.bandwidth': '800 Gb/s'}.")
      .def_static(
          "from_yaml",
          [](const std::string& text, const py::object& nodes, const py::object& device,
             const py::object& host, const py::dict& set) {
            return std::make_unique<cluster>(read_cluster(config_node::parse_text(text, "yaml"),
                                                          overrides_of(nodes, device, host, set)));
          },
          py::arg("text"), py::kw_only(), py::arg("nodes") = py::none(),
          py::arg("device") = py::none(), py::arg("host") = py::none(), py::arg("set") = py::dict(),
          "The same from the text of a cluster file.")
      .def_readonly("name", &cluster::name)
      .def_readonly("nodes", &cluster::nodes)
      .def_readonly("devices_per_node", &cluster::devices_per_node)
      .def_property_readonly("devices", &cluster::devices, "How many there are.")
      .def_property_readonly("device", [](const cluster& c) { return c.device.name; })
      .def_property_readonly(
          "host", [](const cluster& c) { return c.host.name; }, "Empty without one.")
      .def_property_readonly(
          "memory_bytes", [](const cluster& c) { return c.device.memory.value(); },
          "Of one device.")
      .def_property_readonly(
          "peak_tflops", [](const cluster& c) { return c.device.peak_half.value() / 1e12; },
          "Of one device in bf16, dense.")
      .def("__repr__", [](const cluster& c) {
        return fmt::format("Cluster('{}', {} x {})", c.name, c.devices(), c.device.name);
      });
}

std::string documents_of(const py::object& documents) {
  if (documents.is_none() || py::isinstance<py::str>(documents)) return text_of(documents);
  return py::str(",")
      .attr("join")(py::module_::import("builtins").attr("map")(py::type::of(py::str()), documents))
      .cast<std::string>();
}

void bind_attention(py::module_& m) {
  py::class_<attention> layer(
      m, "Attention",
      "One attention layer over all its heads: Q of shape [batch, seq, heads, "
      "head_dim],\nK and V of [batch, seq, kv_heads, head_dim].");
  bind_figures(layer);
  layer
      .def(py::init([](const py::object& seq, const py::object& heads, const py::object& kv_heads,
                       const py::object& head_dim, const py::object& model, const py::object& batch,
                       const py::object& mask, const py::object& window, const py::object& layer,
                       const py::object& documents, const std::string& dtype, std::int64_t pad_to) {
             ask::question q;
             set(q, "seq", seq);
             set(q, "heads", heads);
             set(q, "kv-heads", kv_heads);
             set(q, "head-dim", head_dim);
             set(q, "model", model);
             set(q, "batch", batch);
             set(q, "mask", mask);
             set(q, "window", window);
             set(q, "layer", layer);
             ask::set(q, "documents", documents_of(documents));
             ask::set(q, "dtype", dtype);
             q.pad = pad_to > 1;
             return ask::problem_of(q, pad_to);
           }),
           py::arg("seq"), py::kw_only(), py::arg("heads") = py::none(),
           py::arg("kv_heads") = py::none(), py::arg("head_dim") = py::none(),
           py::arg("model") = py::none(), py::arg("batch") = 1, py::arg("mask") = py::none(),
           py::arg("window") = py::none(), py::arg("layer") = py::none(),
           py::arg("documents") = py::none(), py::arg("dtype") = "bf16", py::arg("pad_to") = 1,
           "Sizes as numbers or text such as '1M'. documents: lengths of packed documents, in "
           "tokens.\nwindow: of a sliding window, in tokens. pad_to: pad the sequence to a "
           "multiple of that.")
      .def("__repr__", [](const attention& a) {
        return fmt::format("Attention({}, heads={}, kv_heads={}, head_dim={}, batch={}, mask='{}')",
                           a.sequence, a.heads, a.kv_heads, a.head_dim, a.batch, name_of(a.mask));
      });
}

std::string grid_text(const py::object& grid) {
  if (!py::isinstance<py::tuple>(grid)) return text_of(grid);
  const auto [rows, cols] = grid.cast<std::pair<int, int>>();
  return fmt::format("{}x{}", rows, cols);
}

void bind_strategy(py::module_& m) {
  py::class_<wanted_strategy>(
      m, "Strategy", "How attention is distributed; what is not given is the schedule's choice.")
      .def(py::init([](const std::string& schedule, const py::object& grid,
                       const py::object& ulysses, const py::object& tp, const py::object& tokens,
                       const py::object& placement, const py::object& kernel,
                       const py::object& kv_order, const py::object& reduction,
                       const py::object& merges, const py::object& launch_order,
                       const py::object& partials, const py::object& gradients) {
             wanted_strategy wanted;
             auto& q = wanted.asked;
             ask::set(q, "schedule", schedule);
             if (!grid.is_none()) ask::set(q, "grid", grid_text(grid));
             set(q, "ulysses", ulysses);
             set(q, "tp", tp);
             set(q, "tokens", tokens);
             set(q, "placement", placement);
             set(q, "kernel", kernel);
             set(q, "kv-order", kv_order);
             set(q, "reduction", reduction);
             set(q, "merges", merges);
             set(q, "launch-order", launch_order);
             set(q, "partials", partials);
             set(q, "gradients", gradients);
             return wanted;
           }),
           py::arg("schedule") = "ring", py::kw_only(), py::arg("grid") = py::none(),
           py::arg("ulysses") = py::none(), py::arg("tp") = 1, py::arg("tokens") = py::none(),
           py::arg("placement") = py::none(), py::arg("kernel") = py::none(),
           py::arg("kv_order") = py::none(), py::arg("reduction") = py::none(),
           py::arg("merges") = py::none(), py::arg("launch_order") = py::none(),
           py::arg("partials") = py::none(), py::arg("gradients") = py::none(),
           "grid: (rows, columns) or '8x4'; a row's ranks share queries, a column's keys and "
           "values.\nThe values are those of the flags of attnsim predict.")
      .def_property_readonly(
          "schedule",
          [](const wanted_strategy& s) { return s.chosen ? s.chosen->schedule : s.asked.schedule; })
      .def("__repr__", [](const wanted_strategy& s) {
        const auto shown = s.on({});
        const auto grid =
            shown.rows > 0 ? fmt::format(", grid=({}, {})", shown.rows, shown.cols) : "";
        return fmt::format("Strategy('{}'{}, tokens='{}')", shown.schedule, grid,
                           name_of(shown.tokens));
      });
}

}  // namespace

void bind_requests(py::module_& m) {
  bind_cluster(m);
  bind_attention(m);
  bind_strategy(m);
}

}  // namespace attnsim::python
