// The table of a question's fields. A new field is one member of the question and one row here.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "ask/lengths.hpp"
#include "ask/question.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/schedule/placement.hpp"
#include "model/spelling.hpp"
#include "model/units.hpp"

namespace attnsim::ask {
namespace {

using text = std::string;

std::int64_t parse_tokens(const text& t) {
  return parse_whole(t, 0);
}
std::int64_t parse_size(const text& t) {
  return parse_whole(t);
}

/// Ranks of a group.
std::int64_t parse_degree(const text& t) {
  constexpr std::int64_t most = 1 << 20;
  const auto degree = parse_whole(t);
  if (degree > most) throw std::invalid_argument(fmt::format("expected at most {} ranks", most));
  return degree;
}

/// "4x2" as {4, 2}.
std::pair<int, int> parse_grid(const text& t) {
  const auto x = t.find('x');
  try {
    if (x == text::npos) throw std::invalid_argument("");
    return {static_cast<int>(parse_degree(t.substr(0, x))),
            static_cast<int>(parse_degree(t.substr(x + 1)))};
  } catch (const std::invalid_argument&) {
    throw std::invalid_argument("expected ROWSxCOLUMNS, such as 8x4");
  }
}

/// "8K,4K*2" as {8192, 4096, 4096}.
std::vector<std::int64_t> parse_documents(const text& list) {
  constexpr std::size_t most = 1 << 16;
  std::vector<std::int64_t> lengths;
  std::istringstream stream(list);
  for (text item; std::getline(stream, item, ',');) {
    const auto star = item.find('*');
    const auto length = parse_whole(item.substr(0, star));
    const auto times = star == text::npos ? 1 : parse_whole(item.substr(star + 1));
    if (times > static_cast<std::int64_t>(most - lengths.size()))
      throw std::invalid_argument(fmt::format("expected at most {} documents", most));
    lengths.insert(lengths.end(), static_cast<std::size_t>(times), length);
  }
  return lengths;
}

/// A list, or what read_lengths takes.
std::vector<std::int64_t> parse_cache_lengths(const text& t) {
  const bool is_list = !t.empty() && t.find_first_not_of("0123456789KMG,*") == text::npos;
  return is_list ? parse_documents(t) : read_lengths(t, "cache-lengths");
}

text parse_schedule(const text& t) {
  return text(find_algorithm(t).name);
}

/// Its name, of a profile that can be read.
text parse_framework(const text& t) {
  read_framework_file(t);
  return t;
}

bool parse_switch(const text& t) {
  if (t == "true" || t == "false") return t == "true";
  throw std::invalid_argument("expected true or false");
}

/// "3,1*2" as {3, 1, 1}.
std::vector<std::int64_t> parse_shares(const text& list) {
  constexpr std::int64_t most = 1 << 20;
  auto shares = parse_documents(list);
  if (std::any_of(shares.begin(), shares.end(), [](auto one) { return one > most; }))
    throw std::invalid_argument(fmt::format("expected whole numbers up to {}", most));
  return shares;
}

std::int64_t parse_parts(const text& t) {
  constexpr std::int64_t most = 64;
  const auto parts = parse_whole(t);
  if (parts > most) throw std::invalid_argument(fmt::format("expected at most {} parts", most));
  return parts;
}

std::pair<text, text> parse_setting(const text& t) {
  const auto equals = t.find('=');
  if (equals == text::npos || equals == 0) throw std::invalid_argument("expected key.path=value");
  return {t.substr(0, equals), t.substr(equals + 1)};
}

text written(const text& value) {
  return value;
}
text written(std::int64_t value) {
  return std::to_string(value);
}
text written(const std::pair<int, int>& grid) {
  return fmt::format("{}x{}", grid.first, grid.second);
}
template <typename Named>
requires std::is_enum_v<Named> text written(Named value) {
  return text(name_of(value));
}
template <typename T>
text written(const std::optional<T>& value) {
  return value ? written(*value) : "";
}

text written(const std::vector<std::int64_t>& list) {
  text all;
  for (const auto length : list) all += (all.empty() ? "" : ",") + written(length);
  return all;
}

/// Of an enumeration whose values count from 0.
template <typename Named>
std::vector<text> names_of() {
  std::vector<text> names;
  for (int i = 0; name_of(static_cast<Named>(i)) != "?"; ++i)
    names.emplace_back(name_of(static_cast<Named>(i)));
  return names;
}

std::vector<text> wire_type_names() {
  auto names = names_of<data_type>();
  std::erase(names, name_of(data_type::fp32));
  return names;
}

std::vector<text> schedule_names() {
  return names_in(algorithms());
}

/// A row whose value is one member: `Parse` makes it of its text.
template <auto Member, auto Parse>
constexpr field row(std::string_view name, field_group group, std::string_view means,
                    std::string_view usual = "", std::vector<text> (*choices)() = nullptr) {
  return {.name = name,
          .group = group,
          .means = means,
          .usual = usual,
          .read = [](question& q, const text& t) { q.*Member = Parse(t); },
          .write =
              [](const question& q) {
                return q.*Member == question{}.*Member ? "" : written(q.*Member);
              },
          .choices = choices};
}

constexpr field opened(field f) {
  f.is_open = true;
  return f;
}

template <auto Member>
constexpr field name_row(std::string_view name, field_group group, std::string_view means,
                         std::vector<text> (*choices)() = nullptr) {
  return opened(row<Member, [](const text& t) { return t; }>(name, group, means, "", choices));
}

const field table[] = {
    {"nodes", field_group::cluster, "number of nodes instead of the file's", "",
     [](question& q, const text& t) { q.overrides.nodes = parse_whole(t); },
     [](const question& q) { return q.overrides.nodes == 0 ? "" : written(q.overrides.nodes); }},
    {"device", field_group::cluster, "device profile instead of the file's", "",
     [](question& q, const text& t) { q.overrides.device = t; },
     [](const question& q) { return q.overrides.device; }, field::form::value, shipped_devices,
     true},
    {"host", field_group::cluster,
     "host profile or file: what a framework takes to launch, such as pytorch (default: nothing, "
     "as with CUDA graphs)",
     "", [](question& q, const text& t) { q.overrides.host = t; },
     [](const question& q) { return q.overrides.host; }, field::form::value, shipped_hosts, true},
    row<&question::ranks, parse_size>("ranks", field_group::cluster,
                                      "use the first N devices (default: all)"),
    {"set", field_group::cluster, "override a key of the cluster file: key.path=value", "",
     [](question& q, const text& t) { q.overrides.set.push_back(parse_setting(t)); },
     [](const question& q) {
       text all;
       for (const auto& [key, value] : q.overrides.set)
         all += fmt::format("{}{}={}", all.empty() ? "" : "\n", key, value);
       return all;
     },
     field::form::list},

    row<&question::sequence, parse_size>("seq", field_group::attention,
                                         "tokens of the sequence, such as 131072, 128K or 1M"),
    row<&question::documents, parse_documents>(
        "documents", field_group::attention,
        "packed documents by length, such as 64K,16K*3,8K*2: tokens see their own only"),
    row<&question::prefix, parse_tokens>(
        "prefix", field_group::attention,
        "cached tokens before the sequence: keys and values only, over the ranks in the token "
        "layout (forward)",
        "0"),
    {"cache-lengths", field_group::attention,
     "cached tokens of each request of a batch, such as 64K,4K*7, a file with one a line or "
     "lognormal:mean=N,sigma=X,max=N,count=N (schedules that decode)",
     "", [](question& q, const text& t) { q.prefixes = parse_cache_lengths(t); },
     [](const question& q) { return written(q.prefixes); }},
    row<&question::kv_sequence, parse_tokens>(
        "kv-seq", field_group::attention,
        "tokens of another sequence that is attended to, 0 for none (cross-attention, full mask)",
        "0"),
    row<&question::batch, parse_size>("batch", field_group::attention, "sequences", "1"),
    row<&question::heads, parse_size>("heads", field_group::attention, "query heads (default 32)"),
    row<&question::kv_heads, parse_size>("kv-heads", field_group::attention,
                                         "key and value heads (default: as many as heads)"),
    {"head-dim", field_group::attention,
     "elements of a head (default 128), or as 192/128 of keys and of values", "",
     [](question& q, const text& t) {
       const auto slash = t.find('/');
       q.head_dim = parse_size(t.substr(0, slash));
       if (slash != text::npos) q.v_head_dim = parse_size(t.substr(slash + 1));
     },
     [](const question& q) { return written(q.head_dim); }},
    row<&question::v_head_dim, parse_size>(
        "v-head-dim", field_group::attention,
        "elements of a head of values and outputs, where keys and queries have another number"),
    name_row<&question::model>("model", field_group::attention,
                               "attention of a published model, such as llama3-8b, or of a "
                               "config.json: heads, mask and window",
                               known_models),
    row<&question::layer, parse_layer>("layer", field_group::attention,
                                       "full or window: which layers of a model that has both",
                                       "full", names_of<layer_kind>),
    row<&question::mask, parse_mask>(
        "mask", field_group::attention,
        "full or causal (default: the model's, else causal; full with kv-seq)", "",
        names_of<mask_kind>),
    row<&question::window, parse_tokens>(
        "window", field_group::attention,
        "sliding window in tokens, 0 for none (default: the model's, else none)"),
    row<&question::kept_first, parse_tokens>(
        "keep-first", field_group::attention,
        "first tokens of each document that stay visible when the window has moved on "
        "(StreamingLLM)",
        "0"),
    {"sinks", field_group::attention,
     "attention sinks: a logit a head in the softmax's denominator (default: the model's, else "
     "none)",
     "", [](question& q, const text& t) { q.sinks = parse_switch(t); },
     [](const question& q) {
       return text(!q.sinks ? "" : *q.sinks ? "true" : "false");
     },
     field::form::on_off},
    {"latent", field_group::attention,
     "latent attention as it decodes, its projections absorbed (forward): one K/V head whose first "
     "v-head-dim elements are the values, stored and sent once; with a model as it has them",
     "", [](question& q, const text& t) { q.latent = parse_switch(t); },
     [](const question& q) { return text(q.latent ? "true" : ""); }, field::form::on_off},
    row<&question::dtype, parse_data_type>("dtype", field_group::attention,
                                           "bf16, fp16, fp32 or fp8 (queries, keys, values and "
                                           "probabilities in e4m3, outputs and gradients "
                                           "in bf16)",
                                           "bf16", names_of<data_type>),
    row<&question::wire_dtype, parse_data_type>(
        "wire-dtype", field_group::attention,
        "bf16, fp16 or fp8: of queries, keys and values between ranks (default: as dtype)", "",
        wire_type_names),
    row<&question::pass, parse_pass>(
        "pass", field_group::attention,
        "forward (inference), backward, both (training) or recompute (training, forward twice)",
        "both", names_of<pass_kind>),
    {"pad", field_group::attention, "pad the sequence to what the token layout needs", "",
     [](question& q, const text& t) { q.pad = parse_switch(t); },
     [](const question& q) { return text(q.pad ? "true" : ""); }, field::form::on_off},

    row<&question::schedule, parse_schedule>("schedule", field_group::strategy,
                                             "algorithm (attnsim schedules lists them)", "ring",
                                             schedule_names),
    row<&question::order, parse_kv_order>("kv-order", field_group::strategy,
                                          "direct or transposed (attention2d)", "",
                                          names_of<kv_order>),
    row<&question::grid, parse_grid>(
        "grid", field_group::strategy,
        "ROWSxCOLUMNS, such as 8x4, of ranks or of groups of ulysses x tp ranks"),
    row<&question::ulysses, parse_degree>("ulysses", field_group::strategy,
                                          "ranks of a group that exchanges tokens for heads"),
    row<&question::tensor_parallel, parse_degree>("tp", field_group::strategy,
                                                  "tensor-parallel ranks: each has its heads of "
                                                  "all tokens; their all-reduces are not counted "
                                                  "(default: 1; plan: any where schedules decode)"),
    row<&question::tokens, parse_token_layout>(
        "tokens", field_group::strategy,
        "contiguous, zigzag (of each document), zigzag-stream "
        "or striped",
        "", names_of<token_layout>),
    name_row<&question::placement>("placement", field_group::strategy,
                                   "node-major, column-in-node, tile-in-node or custom:0,1,...",
                                   placements),
    name_row<&question::kernel>("kernel", field_group::strategy,
                                "attention kernel of the device profile"),
    row<&question::reduction, parse_reduction>("reduction", field_group::strategy,
                                               "ring or all-to-all, of partial outputs", "",
                                               names_of<reduction_kind>),
    row<&question::merges, parse_merges>(
        "merges", field_group::strategy,
        "fused or unfused: of partial outputs, by one kernel or by a framework's operations", "",
        names_of<merge_kind>),
    row<&question::launch, parse_launch_order>(
        "launch-order", field_group::strategy,
        "communication-first or compute-first, as frameworks often launch", "",
        names_of<launch_order>),
    row<&question::partials, parse_precision>("partials", field_group::strategy,
                                              "storage or fp32: partial outputs on the wire", "",
                                              names_of<precision>),
    row<&question::gradients, parse_precision>("gradients", field_group::strategy,
                                               "storage or fp32: gradients on the wire", "",
                                               names_of<precision>),
    row<&question::keys_sent, parse_key_form>(
        "keys-sent", field_group::strategy,
        "expanded or latent: what travels of the keys and values of a model with latent attention "
        "(forward; default: expanded; plan: both)",
        "", names_of<key_form>),
    row<&question::levels, parse_levels>(
        "levels", field_group::strategy,
        "what the ranks along each axis of a composed schedule do: 'keys-ring:2 keys-gather:4 "
        "queries-gather:2'"),
    row<&question::parts, parse_parts>(
        "parts", field_group::strategy,
        "equal parts of the heads, one after the other: transfers of one lie under another's "
        "kernels",
        "1"),
    row<&question::shares, parse_shares>(
        "shares", field_group::strategy,
        "unequal shares of the tokens, one for each chunk, in any unit: 2*4,1*4"),
    {"schedule-file", field_group::strategy,
     "schedule that attnsim search found and saved: sets the fields that it holds", "",
     [](question& q, const text& t) { use_schedule_file(q, t); },
     [](const question& q) { return q.schedule_file; }},
    opened(row<&question::framework, parse_framework>(
        "framework", field_group::strategy,
        "framework profile or file: copies, merges, precisions, launch order and host as it has "
        "them, "
        "where not given (default: none of its own)",
        "", shipped_frameworks)),

    row<&question::by, parse_prediction_method>("by", field_group::reading,
                                                "simulation or analytic", "simulation",
                                                names_of<prediction_method>),
};

/// A path into the cluster file says itself what is wrong with it; a single word may be a misspelt field.
void require_cluster_key(const std::string& key, const std::vector<std::string>& fields) {
  auto known = cluster_keys();
  if (key.find('.') != text::npos || std::find(known.begin(), known.end(), key) != known.end())
    return;
  known.insert(known.begin(), fields.begin(), fields.end());
  throw input_error(location{key, ""},
                    "unknown key; expected a field of the question or a key of the cluster file" +
                        did_you_mean(key, known));
}

}  // namespace

std::span<const field> fields() {
  return table;
}

const field* find_field(std::string_view name) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const field& f) { return f.name == name; });
  return found == std::end(table) ? nullptr : found;
}

void set(question& q, std::string_view name, const std::string& text) {
  set(q, *find_field(name), text);
}

std::string written(const question& q, std::initializer_list<std::string_view> left_out) {
  std::string all;
  for (const auto& f : table) {
    const bool is_left_out = std::find(left_out.begin(), left_out.end(), f.name) != left_out.end();
    const auto text = is_left_out ? "" : f.write(q);
    if (!text.empty()) all += fmt::format("{}{}={}", all.empty() ? "" : " ", f.name, text);
  }
  return all;
}

void set_cluster_key(question& q, const std::string& key, const std::string& text,
                     const std::vector<std::string>& fields) {
  if (key == "cluster") {
    q.cluster = text;
  } else {
    require_cluster_key(key, fields);
    q.overrides.set.emplace_back(key, text);
  }
}

void set_key(question& q, const std::string& key, const std::string& text) {
  if (const auto* f = find_field(key)) return set(q, *f, text);
  set_cluster_key(q, key, text, names_in(table));
}

}  // namespace attnsim::ask
