#include "calibrate/measurements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/cost/elementwise.hpp"
#include "model/error.hpp"
#include "model/median.hpp"
#include "model/named.hpp"
#include "model/read_file.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

using nlohmann::ordered_json;

constexpr auto schema = "attnsim.measurements.2";

constexpr name_table<transfer_kind, 6> transfer_kinds{
    {{transfer_kind::send, "send"},
     {transfer_kind::exchange, "exchange"},
     {transfer_kind::all_gather, "all_gather"},
     {transfer_kind::reduce_scatter, "reduce_scatter"},
     {transfer_kind::all_to_all, "all_to_all"},
     {transfer_kind::all_reduce, "all_reduce"}}};

constexpr name_table<product_use, 4> product_uses{
    {{product_use::forward, "forward"},
     {product_use::input_gradient, "input-gradient"},
     {product_use::weight_gradient, "weight-gradient"},
     {product_use::gradient_sum, "gradient-sum"}}};

constexpr name_table<sequence_kind, 3> sequence_kinds{{{sequence_kind::casts, "casts"},
                                                       {sequence_kind::exchanges, "exchanges"},
                                                       {sequence_kind::both, "both"}}};

constexpr name_table<sequence_start, 3> sequence_starts{{{sequence_start::idle, "idle"},
                                                         {sequence_start::graph, "graph"},
                                                         {sequence_start::ahead, "ahead"}}};

// --- Writing --------------------------------------------------------------------------------------

ordered_json fields(const kernel_point& p) {
  return {{"kernel", p.kernel},     {"pass", name_of(p.pass)}, {"mask", name_of(p.mask)},
          {"batch", p.batch},       {"heads", p.heads},        {"kv_heads", p.kv_heads},
          {"head_dim", p.head_dim}, {"rows", p.rows},          {"cols", p.cols}};
}

ordered_json fields(const memory_point& p) {
  return {{"operation", p.operation},
          {"tokens", p.tokens},
          {"heads", p.heads},
          {"head_dim", p.head_dim}};
}

ordered_json fields(const transfer_point& p) {
  return {{"operation", name_of(p.operation)},
          {"members", p.members},
          {"stride", p.stride},
          {"channels", p.channels},
          {"bytes", p.bytes},
          {"also", p.also},
          {"at_once", p.at_once}};
}

ordered_json fields(const overlap_point& p) {
  return {{"kernel", fields(p.kernel)},
          {"transfer", fields(p.transfer)},
          {"launch_order", name_of(p.order)}};
}

ordered_json fields(const product_point& p) {
  return {{"kernel", p.kernel},
          {"use", name_of(p.use)},
          {"rows", p.rows},
          {"cols", p.cols},
          {"inner", p.inner}};
}

ordered_json fields(const elementwise_point& p) {
  return {{"kernel", p.kernel},
          {"operation", name_of(p.operation)},
          {"rows", p.rows},
          {"width", p.width}};
}

ordered_json fields(const sequence_point& p) {
  return {{"operations", name_of(p.operations)},
          {"members", p.members},
          {"count", p.count},
          {"start", name_of(p.start)}};
}

constexpr const char* kinds[] = {"kernel", "memory",      "transfer", "overlap",
                                 "matmul", "elementwise", "sequence"};  // as measured_point

ordered_json to_json(const measurement& m) {
  ordered_json result{{"kind", kinds[m.what.index()]}};
  result.update(std::visit([](const auto& p) { return fields(p); }, m.what));
  result["samples"] = m.samples;
  return result;
}

// --- Reading --------------------------------------------------------------------------------------

/// An object of the file, and where it is.
class reader {
 public:
  reader(const ordered_json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw input_error(where_, object.dump(), "expected an object");
  }

  template <typename T>
  T get(const char* key, const char* expected) const {
    const auto& value = at(key);
    try {
      return value.template get<T>();
    } catch (const ordered_json::exception&) {
      fail(key, value, expected);
    }
  }
  std::string text(const char* key) const { return get<std::string>(key, "expected a text"); }
  bool has(const char* key) const { return object_.contains(key); }
  std::int64_t count(const char* key, std::int64_t least = 1) const {
    const auto& value = at(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < least)
      fail(key, value, fmt::format("expected a whole number of at least {}", least));
    return value.get<std::int64_t>();
  }
  template <typename Parse>
  auto named(const char* key, Parse parse) const {
    try {
      return parse(text(key));
    } catch (const std::invalid_argument& e) {
      fail(key, at(key), e.what());
    }
  }
  reader object(const char* key) const { return {at(key), where_ + ": " + key}; }

  [[noreturn]] void fail(const std::string& key, const ordered_json& value,
                         const std::string& expected) const {
    throw input_error(where_ + ": " + key,
                      value.is_string() ? value.get<std::string>() : value.dump(), expected);
  }

 private:
  const ordered_json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw input_error(where_ + ": " + key + ": missing");
    return *found;
  }

  const ordered_json& object_;
  std::string where_;
};

kernel_point read_kernel(const reader& r) {
  return {.kernel = r.text("kernel"),
          .pass = r.named("pass", parse_pass),
          .mask = r.named("mask", parse_mask),
          .batch = r.count("batch"),
          .heads = r.count("heads"),
          .kv_heads = r.count("kv_heads"),
          .head_dim = r.count("head_dim"),
          .rows = r.count("rows"),
          .cols = r.count("cols")};
}

transfer_point read_transfer(const reader& r) {
  return {.operation = r.named("operation", parse_transfer_kind),
          .members = static_cast<int>(r.count("members", 2)),
          .stride = static_cast<int>(r.count("stride")),
          .channels = static_cast<int>(r.count("channels", 0)),
          .bytes = r.count("bytes", 0),
          .also = r.has("also") ? r.count("also", 0) : 0,
          .at_once = r.has("at_once") ? static_cast<int>(r.count("at_once")) : 1};
}

overlap_point read_overlap(const reader& r) {
  const auto kernel = r.object("kernel"), transfer = r.object("transfer");
  const overlap_point p{.kernel = read_kernel(kernel),
                        .transfer = read_transfer(transfer),
                        .order = r.named("launch_order", parse_launch_order)};
  if (p.kernel.rows != p.kernel.cols)
    kernel.fail("cols", p.kernel.cols, fmt::format("expected as many as rows, {}", p.kernel.rows));
  const auto allowed = {transfer_kind::exchange, transfer_kind::all_gather,
                        transfer_kind::reduce_scatter};
  if (std::find(allowed.begin(), allowed.end(), p.transfer.operation) == allowed.end())
    transfer.fail("operation", name_of(p.transfer.operation),
                  expected_one_of(name_of(p.transfer.operation),
                                  {"exchange", "all_gather", "reduce_scatter"}));
  return p;
}

elementwise_point read_elementwise(const reader& r) {
  const elementwise_point p{.kernel = r.text("kernel"),
                            .operation = r.named("operation", parse_elementwise),
                            .rows = r.count("rows"),
                            .width = r.count("width")};
  if (p.operation == elementwise_kind::plain)
    r.fail("operation", "plain", "expected an operation that has a name of its own");
  return p;
}

measured_point read_point(const reader& r) {
  const auto kind = r.text("kind");
  if (kind == "kernel") return read_kernel(r);
  if (kind == "transfer") return read_transfer(r);
  if (kind == "memory") {
    return memory_point{.operation = r.text("operation"),
                        .tokens = r.count("tokens"),
                        .heads = r.count("heads"),
                        .head_dim = r.count("head_dim")};
  }
  if (kind == "overlap") return read_overlap(r);
  if (kind == "matmul") {
    return product_point{.kernel = r.text("kernel"),
                         .use = r.named("use", parse_product_use),
                         .rows = r.count("rows"),
                         .cols = r.count("cols"),
                         .inner = r.count("inner")};
  }
  if (kind == "elementwise") return read_elementwise(r);
  if (kind == "sequence") {
    return sequence_point{.operations = r.named("operations", parse_sequence_kind),
                          .members = static_cast<int>(r.count("members")),
                          .count = static_cast<int>(r.count("count")),
                          .start = r.named("start", parse_sequence_start)};
  }
  r.fail("kind", kind, expected_one_of(kind, {std::begin(kinds), std::end(kinds)}));
}

measurement read_measurement(const reader& r) {
  measurement m{.what = read_point(r)};
  m.samples = r.get<std::map<std::string, std::vector<double>>>(
      "samples", "expected lists of seconds by name");
  for (const auto& [name, list] : m.samples) {
    for (const double s : list) {
      if (!(s > 0) && name == "time_s") r.fail("samples: " + name, s, "expected a positive time");
    }
  }
  return m;
}

std::string sizes(const kernel_point& p) {
  const auto heads = p.heads == p.kv_heads ? fmt::format("{}", p.heads)
                                           : fmt::format("{}/{}", p.heads, p.kv_heads);
  return fmt::format("{} {} {}, {} heads of {}, {} x {}{}", p.kernel, name_of(p.pass),
                     name_of(p.mask), heads, p.head_dim, p.rows, p.cols,
                     p.batch > 1 ? fmt::format(", batch {}", p.batch) : "");
}

std::string sizes(const transfer_point& p) {
  std::string text =
      fmt::format("{} of {} bytes, {} ranks", name_of(p.operation), p.bytes, p.members);
  if (p.stride > 1) text += fmt::format(" {} apart", p.stride);
  if (p.channels > 0) text += fmt::format(", {} channels", p.channels);
  if (p.also > 0) text += fmt::format(", and {} bytes", p.also);
  if (p.at_once > 1) text += fmt::format(", {} at once", p.at_once);
  return text;
}

}  // namespace

std::string_view name_of(transfer_kind kind) {
  return find_name(transfer_kinds, kind);
}

transfer_kind parse_transfer_kind(std::string_view text) {
  return find_value(transfer_kinds, text);
}

std::string_view name_of(product_use use) {
  return find_name(product_uses, use);
}

product_use parse_product_use(std::string_view text) {
  return find_value(product_uses, text);
}

std::string_view name_of(sequence_kind kind) {
  return find_name(sequence_kinds, kind);
}

sequence_kind parse_sequence_kind(std::string_view text) {
  return find_value(sequence_kinds, text);
}

std::string_view name_of(sequence_start start) {
  return find_name(sequence_starts, start);
}

sequence_start parse_sequence_start(std::string_view text) {
  return find_value(sequence_starts, text);
}

bool has_few_rows(const kernel_point& p) {
  constexpr std::int64_t most = 64, longer = 16;
  return p.pass == pass_kind::forward && p.rows < most && p.cols >= longer * p.rows;
}

std::int64_t memory_traffic(const memory_point& p) {
  constexpr int half = 2, single = 4;
  const int bytes = p.operation == "cast"    ? single + half
                    : p.operation == "delta" ? 2 * half
                                             : single + half + single;
  return p.tokens * p.heads * p.head_dim * bytes;
}

std::int64_t elementwise_traffic(const elementwise_point& p) {
  return p.rows * p.width * cost_of(p.operation).fused;
}

void measurement::add(const sample& s) {
  for (const auto& [name, time] : s) samples[name].push_back(time);
}

std::size_t measurement::rounds() const {
  return samples.empty() ? 0 : samples.begin()->second.size();
}

double measurement::median(const std::string& name) const {
  return attnsim::median(samples.at(name));
}

std::string describe(const measured_point& point) {
  struct {
    std::string operator()(const kernel_point& p) const { return "kernel " + sizes(p); }
    std::string operator()(const memory_point& p) const {
      return fmt::format("{} of {} tokens, {} heads of {}", p.operation, p.tokens, p.heads,
                         p.head_dim);
    }
    std::string operator()(const transfer_point& p) const { return sizes(p); }
    std::string operator()(const overlap_point& p) const {
      return fmt::format("{} beside {}, {}", sizes(p.kernel), sizes(p.transfer), name_of(p.order));
    }
    std::string operator()(const product_point& p) const {
      return fmt::format("{} product {}, {} x {} x {}", p.kernel, name_of(p.use), p.rows, p.cols,
                         p.inner);
    }
    std::string operator()(const elementwise_point& p) const {
      return fmt::format("{} {}, {} x {}", p.kernel, name_of(p.operation), p.rows, p.width);
    }
    std::string operator()(const sequence_point& p) const {
      const auto what =
          p.operations == sequence_kind::both ? "casts and exchanges" : name_of(p.operations);
      return fmt::format("{} {} in a row, {} ranks, {}", p.count, what, p.members,
                         name_of(p.start));
    }
  } text;
  return std::visit(text, point);
}

/// A point a line.
std::string to_json(const measurements& all) {
  std::string text = fmt::format("{{\"schema\": \"{}\",\n\"environment\": {},\n\"points\": [",
                                 schema, ordered_json(all.environment).dump(1));
  const char* separator = "\n";
  for (const auto& m : all.points) {
    text += separator + to_json(m).dump();
    separator = ",\n";
  }
  return text + "\n]}\n";
}

measurements read_measurements(const std::string& path) {
  return read_measurements(path, read_file(path));
}

measurements read_measurements(const std::string& path, const std::string& text) {
  ordered_json file;
  try {
    file = ordered_json::parse(text);
  } catch (const ordered_json::parse_error& e) {
    throw input_error(fmt::format("{}: byte {}: expected JSON", path, e.byte));
  } catch (const ordered_json::out_of_range&) {
    throw input_error(path + ": expected numbers that a double holds");
  }
  const reader root(file, path);
  if (const auto found = root.text("schema"); found == "attnsim.measurements.1") {
    throw input_error(path + ": schema", found,
                      fmt::format("expected {}, where kernels have a device profile's names "
                                  "(attnsim-cuda, cudnn-9.19) and processors are channels",
                                  schema));
  } else if (found != schema) {
    throw input_error(path + ": schema", found, fmt::format("expected {}", schema));
  }
  measurements all;
  all.environment = root.get<std::map<std::string, std::string>>("environment", "expected texts");
  const auto& points = file["points"];
  if (!points.is_array()) throw input_error(path + ": points", points.dump(), "expected a list");
  for (std::size_t i = 0; i < points.size(); ++i) {
    all.points.push_back(
        read_measurement(reader(points[i], fmt::format("{}: points[{}]", path, i))));
  }
  return all;
}

int ranks_of(const measured_point& point) {
  struct {
    int operator()(const kernel_point&) const { return 1; }
    int operator()(const memory_point&) const { return 1; }
    int operator()(const transfer_point& p) const { return (p.members - 1) * p.stride + 1; }
    int operator()(const overlap_point& p) const { return (*this)(p.transfer); }
    int operator()(const product_point&) const { return 1; }
    int operator()(const elementwise_point&) const { return 1; }
    int operator()(const sequence_point& p) const { return p.members; }
  } ranks;
  return std::visit(ranks, point);
}

std::string part_of(const measured_point& point) {
  struct {
    std::string operator()(const kernel_point&) const { return "kernels"; }
    std::string operator()(const memory_point&) const { return "memory"; }
    std::string operator()(const transfer_point& p) const {
      return p.operation == transfer_kind::send || p.operation == transfer_kind::exchange ||
                     p.operation == transfer_kind::all_to_all
                 ? "transfers"
                 : "collectives";
    }
    std::string operator()(const overlap_point&) const { return "overlap"; }
    std::string operator()(const product_point&) const { return "products"; }
    std::string operator()(const elementwise_point&) const { return "elementwise"; }
    std::string operator()(const sequence_point&) const { return "launches"; }
  } part;
  return std::visit(part, point);
}

}  // namespace attnsim
