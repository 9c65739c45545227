#include "model/schedule/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <stdexcept>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<kv_order, 2> kv_orders{
    {{kv_order::direct, "direct"}, {kv_order::transposed, "transposed"}}};
constexpr name_table<reduction_kind, 2> reductions{
    {{reduction_kind::ring, "ring"}, {reduction_kind::all_to_all, "all-to-all"}}};
constexpr name_table<merge_kind, 2> merges{
    {{merge_kind::fused, "fused"}, {merge_kind::unfused, "unfused"}}};
constexpr name_table<key_form, 2> key_forms{
    {{key_form::expanded, "expanded"}, {key_form::latent, "latent"}}};
constexpr name_table<precision, 2> precisions{
    {{precision::storage, "storage"}, {precision::fp32, "fp32"}}};

constexpr name_table<level_kind, 3> level_kinds{{{level_kind::keys_ring, "keys-ring"},
                                                 {level_kind::keys_gather, "keys-gather"},
                                                 {level_kind::queries_gather, "queries-gather"}}};

}  // namespace

std::string_view name_of(level_kind kind) {
  return find_name(level_kinds, kind);
}
level_kind parse_level_kind(std::string_view text) {
  return find_value(level_kinds, text);
}

std::string written(const std::vector<level>& levels) {
  std::vector<std::string> words;
  for (const auto& one : levels)
    words.push_back(fmt::format("{}:{}", name_of(one.kind), one.ranks));
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<level> parse_levels(const std::string& text) {
  constexpr auto expected = "expected levels such as 'keys-ring:2 queries-gather:4'";
  std::vector<level> levels;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto colon = word.find(':');
    if (colon == std::string::npos) throw std::invalid_argument(expected);
    const auto ranks = parse_whole(word.substr(colon + 1));
    if (ranks > 1 << 20) throw std::invalid_argument(expected);
    levels.push_back({parse_level_kind(word.substr(0, colon)), static_cast<int>(ranks)});
  }
  if (levels.empty()) throw std::invalid_argument(expected);
  return levels;
}

bool host_waits::operator()(op_kind kind) const {
  switch (kind) {
    case op_kind::shift:
    case op_kind::transpose:
      return exchange;
    case op_kind::all_gather:
      return all_gather;
    case op_kind::reduce_scatter:
      return reduce_scatter;
    case op_kind::all_to_all:
      return all_to_all;
    default:
      return false;
  }
}

std::string_view name_of(key_form form) {
  return find_name(key_forms, form);
}
key_form parse_key_form(std::string_view text) {
  return find_value(key_forms, text);
}

std::string_view name_of(kv_order order) {
  return find_name(kv_orders, order);
}
std::string_view name_of(reduction_kind reduction) {
  return find_name(reductions, reduction);
}
std::string_view name_of(merge_kind kind) {
  return find_name(merges, kind);
}
std::string_view name_of(precision p) {
  return find_name(precisions, p);
}
kv_order parse_kv_order(std::string_view text) {
  return find_value(kv_orders, text);
}
reduction_kind parse_reduction(std::string_view text) {
  return find_value(reductions, text);
}
merge_kind parse_merges(std::string_view text) {
  return find_value(merges, text);
}
precision parse_precision(std::string_view text) {
  return find_value(precisions, text);
}

}  // namespace attnsim
