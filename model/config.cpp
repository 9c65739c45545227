#include "model/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/printable.hpp"
#include "model/read_file.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

struct repeated_key {
  std::string key;
  int line = 0, first_line = 0;  ///< from 1
};

/// Walks the values as a reader would: aliases must not multiply them without bound, and no map may have a key twice,
/// which throws repeated_key.
class value_check {
 public:
  value_check(const std::string& text, const std::string& name)
      : left_(std::max<std::size_t>(text.size(), 100'000)), name_(name) {}

  void walk(const YAML::Node& node, int depth = 0) {
    if (left_-- == 0 || depth > deepest) {
      throw input_error(fmt::format("{}:{}: expected no aliases that multiply its values", name_,
                                    node.Mark().line + 1));
    }
    if (node.IsSequence()) {
      for (const auto& item : node) walk(item, depth + 1);
    } else if (node.IsMap()) {
      check_keys(node);
      for (const auto& entry : node) walk(entry.second, depth + 1);
    }
  }

 private:
  static void check_keys(const YAML::Node& map) {
    std::map<std::string_view, int> lines;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) continue;
      const int line = entry.first.Mark().line + 1;
      const auto [known, is_new] = lines.try_emplace(entry.first.Scalar(), line);
      if (!is_new) throw repeated_key{entry.first.Scalar(), line, known->second};
    }
  }

  static constexpr int deepest = 600;  ///< yaml-cpp refuses deeper text without aliases
  std::size_t left_;
  const std::string& name_;
};

YAML::Node parse_value(std::string_view key_path, const std::string& value) {
  const auto fail = [&](const char* expected) {
    return input_error(asked("set"), fmt::format("{}={}", key_path, value), expected);
  };
  try {
    const auto node = YAML::Load(value);
    value_check(value, "set").walk(node);
    return node;
  } catch (const YAML::Exception&) {
    throw fail("expected a value in YAML");
  } catch (const repeated_key&) {
    throw fail("expected each key once");
  }
}

std::string scalar_text(const YAML::Node& node) {
  if (!node || node.IsNull()) return "";
  if (node.IsScalar()) return node.Scalar();
  return node.IsSequence() ? "[...]" : "{...}";
}

template <typename Quantity>
Quantity positive_quantity(const std::string& text) {
  const auto value = parse<Quantity>(text);
  const bool zero_allowed = std::is_same_v<Quantity, seconds>;
  if (value < Quantity{} || (value == Quantity{} && !zero_allowed)) {
    throw std::invalid_argument(zero_allowed ? "expected a time of zero or more"
                                             : "expected more than zero");
  }
  return value;
}

template <typename T>
T convert(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (printable(text) == text) return text;
    throw std::invalid_argument("expected one line of UTF-8 text without control characters");
  } else if constexpr (std::is_same_v<T, bool>) {
    if (text == "true") return true;
    if (text == "false") return false;
    throw std::invalid_argument("expected true or false");
  } else if constexpr (std::is_arithmetic_v<T>) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
      throw std::invalid_argument(std::is_integral_v<T> ? "expected a whole number"
                                                        : "expected a number");
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) throw std::invalid_argument("expected a finite number");
    }
    return value;
  } else {
    return positive_quantity<T>(text);
  }
}

}  // namespace

config_node config_node::load(const std::string& path) {
  return parse_text(read_file(path), path);
}

config_node config_node::parse_text(const std::string& text, const std::string& name) {
  return parse(text, name, YAML::NodeType::Map);
}

config_node config_node::parse_list(const std::string& text, const std::string& name) {
  return parse(text, name, YAML::NodeType::Sequence);
}

config_node config_node::parse(const std::string& text, const std::string& name,
                               YAML::NodeType::value root) {
  try {
    auto node = YAML::Load(text);
    if (node.Type() != root) {
      const bool map = root == YAML::NodeType::Map;
      throw input_error(
          fmt::format("{}:1: expected {}", name, map ? "a map of keys to values" : "a list"));
    }
    value_check(text, name).walk(node);
    return config_node(node, name, "", std::make_shared<settings>());
  } catch (const YAML::Exception& e) {
    throw input_error(fmt::format("{}:{}: not valid YAML: {}", name, e.mark.line + 1, e.msg));
  } catch (const repeated_key& twice) {
    throw input_error(fmt::format("{}:{}: {}: expected each key once; it stands in line {} too",
                                  name, twice.line, twice.key, twice.first_line));
  }
}

void config_node::set(std::string_view key_path, const std::string& value) {
  set(key_path, value, asked("set") + fmt::format(": {}", key_path));
}

void config_node::set(std::string_view key_path, const std::string& value, const location& origin) {
  (*set_)[path_to(key_path)] = origin;
  YAML::Node node = node_;
  std::string_view rest = key_path;
  while (true) {
    const auto dot = rest.find('.');
    const std::string key(rest.substr(0, dot));
    if (key.empty() || !node.IsMap()) {
      throw input_error(asked("set"), fmt::format("{}={}", key_path, value),
                        "expected key.path=value with keys of the file");
    }
    if (dot == std::string_view::npos) {
      node[key] = parse_value(key_path, value);
      return;
    }
    if (!node[key]) node[key] = YAML::Node(YAML::NodeType::Map);
    node.reset(node[key]);
    rest.remove_prefix(dot + 1);
  }
}

YAML::Node config_node::child(std::string_view key) const {
  if (!node_.IsMap()) fail("", "expected a map of keys to values");
  return node_[std::string(key)];
}

bool config_node::has(std::string_view key) const {
  const auto node = child(key);
  return node && !node.IsNull();
}

config_node config_node::at(std::string_view key) const {
  if (!has(key)) fail(key, "missing");
  return config_node(child(key), file_, path_to(key), set_);
}

std::vector<config_node> config_node::items() const {
  if (!node_.IsSequence()) fail("", "expected a list");
  std::vector<config_node> result;
  for (std::size_t i = 0; i < node_.size(); ++i) {
    result.push_back(config_node(node_[i], file_, fmt::format("{}[{}]", path_, i), set_));
  }
  return result;
}

std::vector<std::pair<std::string, config_node>> config_node::entries() const {
  if (!node_.IsMap()) fail("", "expected a map of keys to values");
  std::vector<std::pair<std::string, config_node>> result;
  for (const auto& entry : node_) {
    const auto key = scalar_text(entry.first);
    result.emplace_back(key, config_node(entry.second, file_, path_to(key), set_));
  }
  return result;
}

template <typename T>
T config_node::as() const {
  if (!node_.IsScalar()) fail("", "expected a single value");
  try {
    return convert<T>(node_.Scalar());
  } catch (const std::invalid_argument& e) {
    fail("", e.what());
  }
}

template <typename T>
T config_node::get(std::string_view key) const {
  return at(key).as<T>();
}

std::string config_node::get_text(std::string_view key) const {
  if (!has(key)) return "";
  const auto node = at(key);
  return node.node_.IsScalar() ? node.node_.Scalar() : node.as<std::string>();
}

template std::string config_node::as<std::string>() const;
template bool config_node::as<bool>() const;
template double config_node::as<double>() const;
template std::int64_t config_node::as<std::int64_t>() const;
template seconds config_node::as<seconds>() const;
template byte_count config_node::as<byte_count>() const;
template bandwidth config_node::as<bandwidth>() const;
template flop_rate config_node::as<flop_rate>() const;
template std::string config_node::get<std::string>(std::string_view) const;
template bool config_node::get<bool>(std::string_view) const;
template double config_node::get<double>(std::string_view) const;
template std::int64_t config_node::get<std::int64_t>(std::string_view) const;
template seconds config_node::get<seconds>(std::string_view) const;
template byte_count config_node::get<byte_count>(std::string_view) const;
template bandwidth config_node::get<bandwidth>(std::string_view) const;
template flop_rate config_node::get<flop_rate>(std::string_view) const;

std::int64_t config_node::get_integer(std::string_view key, std::int64_t least) const {
  const auto value = get<std::int64_t>(key);
  if (value < least) fail(key, fmt::format("expected a whole number of at least {}", least));
  return value;
}

int config_node::get_within(std::string_view key, int least, int most) const {
  const auto value = get<std::int64_t>(key);
  if (value < least || value > most) {
    fail(key, fmt::format("expected a whole number from {} to {}", least, most));
  }
  return static_cast<int>(value);
}

void config_node::allow_only(std::initializer_list<std::string_view> keys) const {
  allow_only(std::span(keys.begin(), keys.size()));
}

void config_node::allow_only(std::span<const std::string_view> keys) const {
  for (const auto& [key, value] : entries()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw input_error(where(value.node_, key),
                        "unknown key; " + expected_one_of(key, {keys.begin(), keys.end()}));
    }
  }
}

std::string config_node::path_to(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

location config_node::where(const YAML::Node& node, std::string_view key) const {
  const auto path = path_to(key);
  for (const auto& [set_path, origin] : *set_) {
    if (!path.starts_with(set_path)) continue;
    const auto rest = path.substr(set_path.size());
    if (rest.empty() || rest.front() == '.' || rest.front() == '[') return origin + rest;
  }
  const auto mark = node && !node.Mark().is_null() ? node.Mark() : node_.Mark();
  return {fmt::format("{}:{}: {}", file_, mark.line + 1, path), ""};
}

void config_node::fail(std::string_view key, const std::string& expected) const {
  const YAML::Node node = key.empty() ? node_ : node_[std::string(key)];
  if (expected == "missing") {
    throw input_error(where(node_, key), "missing");
  }
  throw input_error(where(node, key), scalar_text(node), expected);
}

}  // namespace attnsim
