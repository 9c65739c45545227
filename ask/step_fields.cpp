// The table of a step's fields. A new field is one member of the question and one row here.
#include <fmt/format.h>

#include "ask/step_question.hpp"
#include "model/named.hpp"
#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim::ask {
namespace {

constexpr name_table<step_task, 2> tasks{
    {{step_task::train, "train"}, {step_task::prefill, "prefill"}}};
constexpr name_table<step_type, 2> types{
    {{step_type::bf16, "bf16"}, {step_type::fp8_linear, "fp8-linear"}}};

/// Of ask/question.hpp: a step asks them as they are.
constexpr std::string_view taken_over[] = {
    "nodes",    "device",       "host",     "ranks",     "set",       "seq",    "prefix",
    "schedule", "kv-order",     "grid",     "ulysses",   "tokens",    "kernel", "reduction",
    "merges",   "launch-order", "partials", "gradients", "framework", "by"};

std::int64_t parse_count(const std::string& text) {
  return parse_whole(text);
}

std::int64_t parse_ranks(const std::string& text) {
  constexpr std::int64_t most = 1 << 20;
  const auto count = parse_whole(text);
  if (count > most) throw std::invalid_argument(fmt::format("expected at most {} ranks", most));
  return count;
}

bool parse_on(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  throw std::invalid_argument("expected true or false");
}

double parse_skew(const std::string& text) {
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  constexpr double most = 1000;
  if (end == 0 || end != text.size() || !(value >= 1) || value > most)
    throw std::invalid_argument("expected a number from 1 to 1000");
  return value;
}

byte_count parse_reserve(const std::string& text) {
  return parse<byte_count>(text);
}

std::string text_of(const std::string& value) {
  return value;
}
std::string text_of(byte_count value) {
  return fmt::format("{} B", value.value());
}
std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(double value) {
  return fmt::format("{}", value);
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(const std::optional<std::int64_t>& value) {
  return value ? text_of(*value) : "";
}
template <typename Named>
requires std::is_enum_v<Named> std::string text_of(Named value) {
  return std::string(name_of(value));
}
template <typename T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "";
}

template <typename Named>
std::vector<std::string> choices_of() {
  std::vector<std::string> names;
  for (int i = 0; name_of(static_cast<Named>(i)) != "?"; ++i)
    names.emplace_back(name_of(static_cast<Named>(i)));
  return names;
}

template <auto Member, auto Parse>
step_field row(std::string_view name, std::string_view means, std::string_view usual = "",
               std::vector<std::string> (*choices)() = nullptr) {
  return {.name = name,
          .group = field_group::step,
          .means = means,
          .usual = usual,
          .read = [](step_question& q, const std::string& text) { q.*Member = Parse(text); },
          .write =
              [](const step_question& q) {
                return q.*Member == step_question{}.*Member ? "" : text_of(q.*Member);
              },
          .choices = choices};
}

template <auto Member>
step_field on_off(std::string_view name, std::string_view means) {
  auto f = row<Member, parse_on>(name, means);
  f.is = step_field::form::on_off;
  return f;
}

/// The row of ask/question.hpp with this number in `taken_over`, about the question in the step's.
template <std::size_t Number>
step_field base_row() {
  const auto& f = *find_field(taken_over[Number]);
  return {
      .name = f.name,
      .group = f.group,
      .means = f.means,
      .usual = f.usual,
      .read = [](step_question& q,
                 const std::string& text) { find_field(taken_over[Number])->read(q.base, text); },
      .write = [](const step_question& q) { return find_field(taken_over[Number])->write(q.base); },
      .is = static_cast<step_field::form>(f.is),
      .choices = f.choices,
      .is_open = f.is_open};
}

template <std::size_t... Numbers>
std::vector<step_field> base_rows(std::index_sequence<Numbers...>) {
  return {base_row<Numbers>()...};
}

std::vector<step_field> all_rows() {
  auto rows = base_rows(std::make_index_sequence<std::size(taken_over)>());
  auto model = row<&step_question::model, [](const std::string& text) { return text; }>(
      "model", "a published model, such as llama3-8b, or a config.json", "", known_models);
  model.is_open = true;
  rows.insert(
      rows.end(),
      {model,
       row<&step_question::task, parse_task>("task",
                                             "train: forward, backward, optimizer; prefill: a "
                                             "batch's time to first token",
                                             "train", choices_of<step_task>),
       row<&step_question::global_batch, parse_count>(
           "global-batch",
           "sequences of a step over all devices (default: a micro-batch a data-parallel rank)"),
       row<&step_question::micro_batch, parse_count>(
           "micro-batch", "sequences that pass the layers together", "1"),
       row<&step_question::tensor, parse_ranks>(
           "tp", "tensor-parallel ranks, with sequence parallelism between them", "1"),
       row<&step_question::context, parse_ranks>(
           "cp", "context-parallel ranks: they share a sequence and its attention", "1"),
       row<&step_question::pipeline, parse_ranks>("pp", "pipeline ranks", "1"),
       row<&step_question::chunks, parse_ranks>(
           "vp", "chunks of layers a pipeline rank has, interleaved", "1"),
       row<&step_question::data, parse_ranks>("dp", "data-parallel ranks (default: what is left)"),
       row<&step_question::expert, parse_ranks>(
           "ep", "ranks that share a layer's experts, of those of a stage", "1"),
       row<&step_question::shard, parse_sharding>(
           "shard",
           "none, optimizer, gradients or parameters: what data-parallel and context-parallel "
           "ranks keep once (ZeRO 1 to 3; parameters: FSDP)",
           "none", choices_of<sharding>),
       row<&step_question::recompute, parse_recomputation>(
           "recompute",
           "none, selective (all but attention's and every second product's results) or full",
           "none", choices_of<recomputation>),
       row<&step_question::dtype, parse_step_type>(
           "dtype", "bf16, or fp8-linear: products of layers in fp8, attention in bf16", "bf16",
           choices_of<step_type>),
       on_off<&step_question::tensor_overlap>("tp-overlap",
                                              "collectives of tensor-parallel ranks in pieces "
                                              "beside the products, where that is faster"),
       on_off<&step_question::eager>(
           "eager", "elementwise operations one by one, as a framework without a compiler"),
       row<&step_question::expert_skew, parse_skew>(
           "expert-skew", "tokens of the busiest expert rank over the mean", "1"),
       row<&step_question::reserve, parse_reserve>(
           "reserve",
           "memory of a device that is kept for what is not counted (contexts, libraries, "
           "fragmentation), such as 6 GiB (default: none)")});
  return rows;
}

}  // namespace

std::string_view name_of(step_task task) {
  return find_name(tasks, task);
}
std::string_view name_of(step_type type) {
  return find_name(types, type);
}
step_task parse_task(std::string_view text) {
  return find_value(tasks, text);
}
step_type parse_step_type(std::string_view text) {
  return find_value(types, text);
}

std::span<const step_field> step_fields() {
  static const auto rows = all_rows();
  return rows;
}

const step_field* find_step_field(std::string_view name) {
  const auto rows = step_fields();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& f) { return f.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

void set(step_question& q, std::string_view name, const std::string& text) {
  set(q, *find_step_field(name), text);
}

void set_key(step_question& q, const std::string& key, const std::string& text) {
  if (const auto* f = find_step_field(key)) return set(q, *f, text);
  if (find_field(key) != nullptr)
    throw input_error(asked(key), text, "expected without scope step");
  std::vector<std::string> names;
  for (const auto& f : step_fields()) names.emplace_back(f.name);
  set_cluster_key(q.base, key, text, names);
}

std::string written(const step_question& q) {
  std::string all;
  for (const auto& f : step_fields()) {
    const auto text = f.write(q);
    if (!text.empty()) all += fmt::format("{}{}={}", all.empty() ? "" : " ", f.name, text);
  }
  return all;
}

}  // namespace attnsim::ask
