#include <fmt/format.h>

#include <sstream>

#include "python/figures.hpp"

namespace attnsim::python {
namespace {

/// The fields that are given, by their names, as `read_fields` takes them.
py::dict written_fields(const ask::question& q) {
  py::dict texts;
  for (const auto& f : ask::fields()) {
    if (const auto text = f.write(q); !text.empty()) texts[py::str(std::string(f.name))] = text;
  }
  return texts;
}

ask::question read_fields(const py::dict& texts) {
  ask::question q;
  for (const auto& [name, text] : texts) {
    const auto& f = *ask::find_field(name.cast<std::string>());
    std::istringstream lines(text.cast<std::string>());
    std::string line;
    if (f.is != ask::field::form::list) ask::set(q, f, lines.str());
    while (f.is == ask::field::form::list && std::getline(lines, line)) ask::set(q, f, line);
  }
  return q;
}

asked_cluster read(const ask::question& q, bool is_text) {
  return {is_text ? read_cluster(config_node::parse_text(q.cluster, "yaml"), q.overrides)
                  : ask::cluster_of(q),
          q, is_text};
}

asked_cluster make_cluster(const py::object& from, bool is_text, const py::object& nodes,
                           const py::object& device, const py::object& host,
                           const py::object& set) {
  ask::question q{.cluster = text_of(from)};
  python::set(q, "nodes", nodes);
  python::set(q, "device", device);
  python::set(q, "host", host);
  if (!set.is_none() && !py::isinstance<py::dict>(set))
    throw py::type_error("set: expected a dictionary of keys and values");
  if (!set.is_none()) {
    for (const auto& [key, value] : set.cast<py::dict>())
      q.overrides.set.emplace_back(text_of(key), text_of(value));
  }
  return read(q, is_text);
}

void bind_cluster(py::module_& m) {
  py::class_<asked_cluster>(
      m, "Cluster", "Devices in nodes and the network that joins them, from a cluster file.")
      .def(py::init([](const py::object& name, const py::object& nodes, const py::object& device,
                       const py::object& host, const py::object& set, const py::kwargs& unknown) {
             refuse(unknown, "Cluster");
             return make_cluster(name, false, nodes, device, host, set);
           }),
           py::arg("name"), py::kw_only(), py::arg("nodes") = py::none(),
           py::arg("device") = py::none(), py::arg("host") = py::none(),
           py::arg("set") = py::none(),
           "name: a shipped cluster (clusters()) or a file. host: what launches operations "
           "(hosts());\n"
           "without one launches take no time. set: keys of the file to override, by path, as\n"
           "{'nics.bandwidth': '800 Gb/s'}.")
      .def_static(
          "from_yaml",
          [](const py::object& text, const py::object& nodes, const py::object& device,
             const py::object& host, const py::object& set, const py::kwargs& unknown) {
            refuse(unknown, "Cluster");
            return make_cluster(text, true, nodes, device, host, set);
          },
          py::arg("text"), py::kw_only(), py::arg("nodes") = py::none(),
          py::arg("device") = py::none(), py::arg("host") = py::none(), py::arg("set") = py::none(),
          "The same from the text of a cluster file.")
      .def(py::pickle(
          [](const asked_cluster& c) {
            return py::make_tuple(c.asked.cluster, c.is_text, written_fields(c.asked));
          },
          [](const py::tuple& state) {
            auto q = read_fields(state[2]);
            q.cluster = state[0].cast<std::string>();
            return read(q, state[1].cast<bool>());
          }))
      .def_readonly("name", &asked_cluster::name)
      .def_readonly("nodes", &asked_cluster::nodes)
      .def_readonly("devices_per_node", &asked_cluster::devices_per_node)
      .def_property_readonly(
          "devices", [](const asked_cluster& c) { return c.devices(); }, "How many there are.")
      .def_property_readonly("device", [](const asked_cluster& c) { return c.device.name; })
      .def_property_readonly(
          "host", [](const asked_cluster& c) { return c.host.name; }, "Empty without one.")
      .def_property_readonly(
          "memory_bytes", [](const asked_cluster& c) { return c.device.memory.value(); },
          "Of one device.")
      .def_property_readonly(
          "peak_tflops", [](const asked_cluster& c) { return c.device.peak_half.value() / 1e12; },
          "Of one device in bf16, dense.")
      .def("__repr__", [](const asked_cluster& c) {
        return fmt::format("Cluster('{}', {} x {})", c.name, c.devices(), c.device.name);
      });
}

std::int64_t read_pad_to(const py::object& value) {
  const auto text = text_of(value);
  try {
    return parse_whole(text);
  } catch (const std::invalid_argument& e) {
    throw input_error(asked("pad-to"), text, e.what());
  }
}

/// All members: one that is added makes this fail to compile.
py::tuple state_of(const attention& a) {
  const auto& [batch, heads, kv_heads, head_dim, v_head_dim, sequence, padding, prefix, prefixes,
               kv_sequence, mask, window, kept_first, sinks, latent, latent_rank, rotary, dtype,
               wire_dtype, documents, notes, shares] = a;
  return py::make_tuple(batch, heads, kv_heads, head_dim, sequence, padding, name_of(mask), window,
                        name_of(dtype), documents, notes, prefix, kv_sequence, v_head_dim, sinks,
                        latent, shares, wire_dtype ? std::string(name_of(*wire_dtype)) : "",
                        kept_first, prefixes, latent_rank, rotary);
}

attention attention_of(const py::tuple& state) {
  const auto number = [&](int i) { return state[i].cast<std::int64_t>(); };
  const auto wire = state[17].cast<std::string>();
  return {.batch = number(0),
          .heads = number(1),
          .kv_heads = number(2),
          .head_dim = number(3),
          .v_head_dim = number(13),
          .sequence = number(4),
          .padding = number(5),
          .prefix = number(11),
          .prefixes = state[19].cast<std::vector<std::int64_t>>(),
          .kv_sequence = number(12),
          .mask = parse_mask(state[6].cast<std::string>()),
          .window = number(7),
          .kept_first = number(18),
          .sinks = state[14].cast<bool>(),
          .latent = state[15].cast<bool>(),
          .latent_rank = number(20),
          .rotary = number(21),
          .dtype = parse_data_type(state[8].cast<std::string>()),
          .wire_dtype = wire.empty() ? std::nullopt : std::optional(parse_data_type(wire)),
          .documents = state[9].cast<std::vector<std::int64_t>>(),
          .notes = state[10].cast<std::vector<std::string>>(),
          .shares = state[16].cast<std::vector<std::int64_t>>()};
}

void bind_attention(py::module_& m) {
  py::class_<attention> layer(
      m, "Attention",
      "One attention layer over all its heads: Q of shape [batch, seq, heads, "
      "head_dim],\nK of [batch, seq, kv_heads, head_dim], V of [batch, seq, kv_heads, "
      "v_head_dim].");
  bind_figures(layer);
  layer
      .def(
          py::init([](const py::object& seq, const py::object& heads, const py::object& kv_heads,
                      const py::object& head_dim, const py::object& model, const py::object& batch,
                      const py::object& mask, const py::object& window, const py::object& layer,
                      const py::object& documents, const py::object& dtype,
                      const py::object& pad_to, const py::object& prefix, const py::object& kv_seq,
                      const py::object& v_head_dim, const py::object& sinks,
                      const py::object& latent, const py::object& wire_dtype,
                      const py::object& keep_first, const py::object& cache_lengths,
                      const py::kwargs& unknown) {
            refuse(unknown, "Attention");
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
            set(q, "documents", documents);
            set(q, "dtype", dtype);
            set(q, "prefix", prefix);
            set(q, "kv-seq", kv_seq);
            set(q, "v-head-dim", v_head_dim);
            set(q, "sinks", sinks);
            set(q, "latent", latent);
            set(q, "wire-dtype", wire_dtype);
            set(q, "keep-first", keep_first);
            set(q, "cache-lengths", cache_lengths);
            const auto unit = read_pad_to(pad_to);
            q.pad = unit > 1;
            return ask::problem_of(q, unit);
          }),
          py::arg("seq"), py::kw_only(), py::arg("heads") = py::none(),
          py::arg("kv_heads") = py::none(), py::arg("head_dim") = py::none(),
          py::arg("model") = py::none(), py::arg("batch") = 1, py::arg("mask") = py::none(),
          py::arg("window") = py::none(), py::arg("layer") = py::none(),
          py::arg("documents") = py::none(), py::arg("dtype") = "bf16", py::arg("pad_to") = 1,
          py::arg("prefix") = 0, py::arg("kv_seq") = 0, py::arg("v_head_dim") = py::none(),
          py::arg("sinks") = py::none(), py::arg("latent") = false,
          py::arg("wire_dtype") = py::none(), py::arg("keep_first") = 0,
          py::arg("cache_lengths") = py::none(),
          "Sizes as numbers or text such as '1M'. documents: lengths of packed documents, in "
          "tokens.\nwindow: of a sliding window, in tokens. pad_to: pad the sequence to a "
          "multiple of that.\nprefix: cached tokens before the sequence. kv_seq: tokens of another "
          "sequence that is attended to. v_head_dim: elements of a head of V, where K has another "
          "number.")
      .def(py::pickle(&state_of, &attention_of))
      .def("__repr__", [](const attention& a) {
        return fmt::format("Attention({}, heads={}, kv_heads={}, head_dim={}, batch={}, mask='{}')",
                           a.sequence, a.heads, a.kv_heads, a.head_dim, a.batch, name_of(a.mask));
      });
}

py::tuple state_of(const framework_copies& c) {
  const auto& [joined, gathered, scattered, received, batched, returned, separate, rate] = c;
  return py::make_tuple(static_cast<int>(joined), gathered, scattered, received, batched, returned,
                        separate, rate);
}

framework_copies copies_of(const py::tuple& state) {
  return {.joined = static_cast<framework_copies::joining>(state[0].cast<int>()),
          .gathered = state[1].cast<bool>(),
          .scattered = state[2].cast<bool>(),
          .received = state[3].cast<bool>(),
          .batched = state[4].cast<bool>(),
          .returned = state[5].cast<bool>(),
          .separate = state[6].cast<bool>(),
          .rate = state[7].cast<double>()};
}

py::tuple state_of(const host_waits& w) {
  const auto& [exchange, all_gather, reduce_scatter, all_to_all] = w;
  return py::make_tuple(exchange, all_gather, reduce_scatter, all_to_all);
}

host_waits waits_of(const py::tuple& state) {
  return {.exchange = state[0].cast<bool>(),
          .all_gather = state[1].cast<bool>(),
          .reduce_scatter = state[2].cast<bool>(),
          .all_to_all = state[3].cast<bool>()};
}

/// Likewise.
py::tuple state_of(const strategy& s) {
  const auto& [schedule, rows, cols, ulysses, tensor_parallel, tokens, placement, kernel, order,
               reduction, merges, partials, gradients, keys_sent, launch, copies, waits, start,
               block_cost, levels, parts, shares] = s;
  return py::make_tuple(schedule, rows, cols, ulysses, tensor_parallel, static_cast<int>(tokens),
                        placement, kernel, static_cast<int>(order), static_cast<int>(reduction),
                        static_cast<int>(merges), static_cast<int>(partials),
                        static_cast<int>(gradients), static_cast<int>(launch),
                        static_cast<int>(start), block_cost, state_of(copies), state_of(waits),
                        written(levels), parts, shares, static_cast<int>(keys_sent));
}

strategy strategy_of(const py::tuple& state) {
  const auto number = [&](int i) { return state[i].cast<int>(); };
  const auto text = [&](int i) { return state[i].cast<std::string>(); };
  return {.schedule = text(0),
          .rows = number(1),
          .cols = number(2),
          .ulysses = number(3),
          .tensor_parallel = number(4),
          .tokens = static_cast<token_layout>(number(5)),
          .placement = text(6),
          .kernel = text(7),
          .order = static_cast<kv_order>(number(8)),
          .reduction = static_cast<reduction_kind>(number(9)),
          .merges = static_cast<merge_kind>(number(10)),
          .partials = static_cast<precision>(number(11)),
          .gradients = static_cast<precision>(number(12)),
          .keys_sent = static_cast<key_form>(number(21)),
          .launch = static_cast<launch_order>(number(13)),
          .copies = copies_of(state[16].cast<py::tuple>()),
          .waits = waits_of(state[17].cast<py::tuple>()),
          .start = static_cast<run_start>(number(14)),
          .block_cost = state[15].cast<double>(),
          .levels = text(18).empty() ? std::vector<level>() : parse_levels(text(18)),
          .parts = number(19),
          .shares = state[20].cast<std::vector<int>>()};
}

void bind_strategy(py::module_& m) {
  py::class_<wanted_strategy>(
      m, "Strategy", "How attention is distributed; what is not given is the schedule's choice.")
      .def(py::init(
               [](const py::object& schedule, const py::object& grid, const py::object& ulysses,
                  const py::object& tp, const py::object& tokens, const py::object& placement,
                  const py::object& kernel, const py::object& kv_order, const py::object& reduction,
                  const py::object& merges, const py::object& launch_order,
                  const py::object& partials, const py::object& gradients,
                  const py::object& framework, const py::object& levels, const py::object& parts,
                  const py::object& shares, const py::object& schedule_file,
                  const py::object& keys_sent, const py::kwargs& unknown) {
                 refuse(unknown, "Strategy");
                 wanted_strategy wanted;
                 auto& q = wanted.asked;
                 set(q, "schedule", schedule);
                 if (!grid.is_none()) ask::set(q, "grid", text_of(grid, "x"));
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
                 set(q, "framework", framework);
                 set(q, "levels", levels);
                 set(q, "parts", parts);
                 set(q, "shares", shares);
                 set(q, "schedule-file", schedule_file);
                 set(q, "keys-sent", keys_sent);
                 return wanted;
               }),
           py::arg("schedule") = "ring", py::kw_only(), py::arg("grid") = py::none(),
           py::arg("ulysses") = py::none(), py::arg("tp") = 1, py::arg("tokens") = py::none(),
           py::arg("placement") = py::none(), py::arg("kernel") = py::none(),
           py::arg("kv_order") = py::none(), py::arg("reduction") = py::none(),
           py::arg("merges") = py::none(), py::arg("launch_order") = py::none(),
           py::arg("partials") = py::none(), py::arg("gradients") = py::none(),
           py::arg("framework") = py::none(), py::arg("levels") = py::none(),
           py::arg("parts") = py::none(), py::arg("shares") = py::none(),
           py::arg("schedule_file") = py::none(), py::arg("keys_sent") = py::none(),
           "grid: (rows, columns) or '8x4'; a row's ranks share queries, a column's keys and "
           "values.\nThe values are those of the flags of attnsim predict.")
      .def(py::pickle(
          [](const wanted_strategy& s) {
            return py::make_tuple(written_fields(s.asked),
                                  s.chosen ? py::object(state_of(*s.chosen)) : py::none());
          },
          [](const py::tuple& state) {
            wanted_strategy s{.asked = read_fields(state[0])};
            if (!state[1].is_none()) s.chosen = strategy_of(state[1]);
            return s;
          }))
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
