#include "model/attention/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "model/error.hpp"
#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<mask_kind, 2> masks{
    {{mask_kind::full, "full"}, {mask_kind::causal, "causal"}}};
constexpr name_table<data_type, 4> types{{{data_type::bf16, "bf16"},
                                          {data_type::fp16, "fp16"},
                                          {data_type::fp32, "fp32"},
                                          {data_type::fp8, "fp8"}}};
constexpr name_table<pass_kind, 4> passes{{{pass_kind::forward, "forward"},
                                           {pass_kind::backward, "backward"},
                                           {pass_kind::both, "both"},
                                           {pass_kind::recompute, "recompute"}}};

}  // namespace

std::string_view name_of(mask_kind mask) {
  return find_name(masks, mask);
}
std::string_view name_of(data_type type) {
  return find_name(types, type);
}
std::string_view name_of(pass_kind pass) {
  return find_name(passes, pass);
}
mask_kind parse_mask(std::string_view text) {
  return find_value(masks, text);
}
data_type parse_data_type(std::string_view text) {
  return find_value(types, text);
}
pass_kind parse_pass(std::string_view text) {
  return find_value(passes, text);
}

std::int64_t element_bytes(data_type type) {
  return type == data_type::fp32 ? 4 : type == data_type::fp8 ? 1 : 2;
}

data_type result_type(data_type type) {
  return type == data_type::fp8 ? data_type::bf16 : type;
}

data_type home_type(const attention& a) {
  return a.dtype == data_type::fp8 ? a.wire_dtype.value_or(a.dtype) : a.dtype;
}

std::vector<std::int64_t> document_bounds(const attention& a, token_side side) {
  if (side == token_side::keys && a.kv_sequence > 0) return {0, a.kv_sequence};
  if (a.documents.empty()) return {0, a.prefix + a.sequence - a.padding};
  std::vector<std::int64_t> bounds{0};
  for (const auto length : a.documents) bounds.push_back(bounds.back() + length);
  return bounds;
}

attention request_of(const attention& a, std::size_t which) {
  auto one = a;
  one.batch = 1;
  one.prefix = a.prefixes[which];
  one.prefixes.clear();
  return one;
}

namespace {

struct excess {
  const char* field;
  std::int64_t value, most;
};

/// Pairs of tokens stay below 2^62, a tensor's bytes below 2^55, as several are added up.
std::optional<excess> find_excess(const attention& a) {
  constexpr std::int64_t most_tokens = std::int64_t{1} << 31, widest_number = 4;
  if (a.sequence > most_tokens) return excess{"seq", a.sequence, most_tokens};
  if (a.prefix > most_tokens - a.sequence)
    return excess{"prefix", a.prefix, most_tokens - a.sequence};
  if (a.kv_sequence > most_tokens) return excess{"kv-seq", a.kv_sequence, most_tokens};
  const auto tokens = std::max(a.sequence, a.tokens(token_side::keys));
  std::int64_t room = (std::int64_t{1} << 55) / widest_number / tokens;
  const auto widest = a.value_dim() > a.head_dim ? std::pair{"v-head-dim", a.value_dim()}
                                                 : std::pair{"head-dim", a.head_dim};
  for (const auto& [field, value] :
       {widest, std::pair{"heads", a.heads}, std::pair{"batch", a.batch}}) {
    if (value > room) return excess{field, value, room};
    room /= value;
  }
  return {};
}

}  // namespace

bool is_countable(const attention& a) {
  return !find_excess(a);
}

namespace {

void check_keys(const attention& a) {
  const std::pair<const char*, std::int64_t> numbers[] = {{"prefix", a.prefix},
                                                          {"kv-seq", a.kv_sequence}};
  for (const auto& [field, value] : numbers) {
    const auto refuse = [&field = field, &value = value](const char* expected) {
      throw input_error(asked(field), std::to_string(value), expected);
    };
    if (value < 0) refuse("expected a whole number of at least 0");
    if (value > 0 && !a.documents.empty()) refuse("expected a sequence without packed documents");
  }
  if (a.kv_sequence == 0) return;
  const auto refuse = [&](const char* expected) {
    throw input_error(asked("kv-seq"), std::to_string(a.kv_sequence), expected);
  };
  if (a.mask != mask_kind::full) refuse("expected a full mask with keys of another sequence");
  if (a.prefix > 0) refuse("expected no cached prefix with keys of another sequence");
}

}  // namespace

namespace {

void check_requests(const attention& a) {
  if (a.prefixes.empty()) return;
  const auto refuse = [](std::int64_t value, const std::string& expected) {
    throw input_error(asked("cache-lengths"), std::to_string(value), expected);
  };
  const auto [least, most] = std::minmax_element(a.prefixes.begin(), a.prefixes.end());
  if (std::ssize(a.prefixes) != a.batch)
    refuse(std::ssize(a.prefixes), fmt::format("expected one for each of {} sequences", a.batch));
  if (*least < 0) refuse(*least, "expected whole numbers of at least 0");
  if (*most != a.prefix) refuse(*most, fmt::format("expected a longest of {}", a.prefix));
  if (a.padding > 0) refuse(a.prefix, "expected new tokens without padding");
}

void check_latent(const attention& a) {
  if (a.latent_rank < 0 || a.rotary < 0 || a.rotary >= a.head_dim) {
    throw input_error(asked("head-dim"), std::to_string(a.head_dim),
                      fmt::format("expected more than the {} rotary elements", a.rotary));
  }
  if (!a.latent) return;
  if (a.kv_heads != 1)
    throw input_error(asked("kv-heads"), std::to_string(a.kv_heads), "expected 1 with latent");
  if (a.latent_rank > 0)
    throw input_error(asked("latent"), "expected keys and values that are not expanded");
  if (a.value_dim() > a.head_dim) {
    throw input_error(asked("v-head-dim"), std::to_string(a.value_dim()),
                      fmt::format("expected at most head-dim {} with latent", a.head_dim));
  }
}

}  // namespace

forward_only::forward_only(pass_kind pass, const std::string& why)
    : input_error(asked("pass"), std::string(name_of(pass)), "expected forward" + why), why_(why) {}

void check(const attention& a, pass_kind pass) {
  if (pass == pass_kind::forward) return;
  if (a.latent) throw forward_only(pass, " with latent: projections are absorbed to decode");
  if (a.prefix > 0) throw forward_only(pass, ": the tokens of a cached prefix have no gradients");
}

void check(const attention& a) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"batch", a.batch},
                                                        {"heads", a.heads},
                                                        {"kv-heads", a.kv_heads},
                                                        {"head-dim", a.head_dim},
                                                        {"seq", a.sequence - a.padding}};
  for (const auto& [field, value] : sizes) {
    if (value < 1)
      throw input_error(asked(field), fmt::format("{}", value),
                        "expected a whole number of at least 1");
  }
  if (a.v_head_dim < 0) {
    throw input_error(asked("v-head-dim"), std::to_string(a.v_head_dim),
                      "expected a whole number of at least 1");
  }
  check_latent(a);
  check_keys(a);
  check_requests(a);
  if (a.wire_dtype == data_type::fp32) {
    throw input_error(asked("wire-dtype"), "fp32", "expected bf16, fp16 or fp8");
  }
  if (const auto too_much = find_excess(a)) {
    throw input_error(asked(too_much->field), std::to_string(too_much->value),
                      fmt::format("expected at most {} here: bytes and pairs of tokens are counted "
                                  "in 64 bits",
                                  too_much->most));
  }
  if (a.window < 0) {
    throw input_error(asked("window"), fmt::format("{}", a.window),
                      "expected a whole number of at least 0");
  }
  if (a.window > 0 && a.mask != mask_kind::causal) {
    throw input_error(asked("window"), fmt::format("{}", a.window),
                      "expected a causal mask with a sliding window");
  }
  if (a.kept_first < 0 || (a.kept_first > 0 && a.window == 0)) {
    throw input_error(
        asked("keep-first"), fmt::format("{}", a.kept_first),
        a.window == 0 ? "expected with a sliding window" : "expected a whole number of at least 0");
  }
  for (const auto length : a.documents) {
    if (length < 1) {
      throw input_error(asked("documents"), fmt::format("{}", length),
                        "expected lengths of at least 1");
    }
  }
  if (const auto end = document_bounds(a).back(); end != a.prefix + a.sequence - a.padding) {
    throw input_error(
        asked("documents"), fmt::format("{}", end),
        fmt::format("expected lengths that add up to the sequence's {}", a.sequence - a.padding));
  }
  if (a.heads % a.kv_heads != 0) {
    std::string divisors;
    for (std::int64_t d = 1; d <= a.heads; ++d) {
      if (a.heads % d == 0) divisors += fmt::format("{}{}", divisors.empty() ? "" : ", ", d);
    }
    throw infeasible(asked("kv-heads"), std::to_string(a.kv_heads),
                     fmt::format("does not divide {} heads; feasible: {}", a.heads, divisors));
  }
}

}  // namespace attnsim
