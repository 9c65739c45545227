// Checked reading of YAML: every error names the file, the line, the key, the value and what is expected, and a key that
// nobody asked for is refused.
//
//   config_node root = config_node::load("cluster.yaml");
//   root.allow_only({"name", "nodes", "nics"});
//   auto nodes = root.get<std::int64_t>("nodes", at_least(1));
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"
#include "model/units.hpp"

namespace attnsim {

class config_node {
 public:
  /// Throws input_error when the file cannot be read, is larger than 64 MiB, is not YAML or has a key twice in one map.
  static config_node load(const std::string& path);
  /// `name` stands for the file in messages.
  static config_node parse_text(const std::string& text, const std::string& name);
  /// The same of a text whose root is a list, not a map.
  static config_node parse_list(const std::string& text, const std::string& name);

  /// Sets key.path to a value, which is YAML, as the field "set" of a question does. Messages about it begin with
  /// `origin`, by default "set: key.path". Throws input_error for a path through a value that is no map.
  void set(std::string_view key_path, const std::string& value);
  void set(std::string_view key_path, const std::string& value, const location& origin);

  bool has(std::string_view key) const;
  bool is_map() const { return node_.IsMap(); }
  bool is_scalar() const { return node_.IsScalar(); }
  bool is_sequence() const { return node_.IsSequence(); }
  const std::string& file() const { return file_; }
  location where() const { return where(node_, ""); }  ///< "FILE:LINE: KEY", as messages begin

  /// The map or sequence under `key`, which must exist.
  config_node at(std::string_view key) const;
  std::vector<config_node> items() const;                            ///< of a sequence
  std::vector<std::pair<std::string, config_node>> entries() const;  ///< of a map, in file order

  /// The value under `key`: std::string (a line that a terminal shows as it is), bool, double, std::int64_t (at least `least`) or a quantity (positive; latencies
  /// may be zero). Throws input_error when it is missing or malformed.
  template <typename T>
  T get(std::string_view key) const;
  template <typename T>
  T get(std::string_view key, T fallback) const {
    return has(key) ? get<T>(key) : fallback;
  }
  /// Any text, of several lines too; empty where there is none.
  std::string get_text(std::string_view key) const;
  std::int64_t get_integer(std::string_view key, std::int64_t least) const;
  std::int64_t get_integer(std::string_view key, std::int64_t least, std::int64_t fallback) const {
    return has(key) ? get_integer(key, least) : fallback;
  }
  /// A whole number from `least` to `most`.
  int get_within(std::string_view key, int least, int most) const;
  /// What `parse` makes of the text under `key`; the std::invalid_argument it throws says what is expected.
  template <typename Parse>
  auto get_as(std::string_view key, Parse parse) const {
    const auto text = get<std::string>(key);
    try {
      return parse(std::string_view(text));
    } catch (const std::invalid_argument& e) {
      fail(key, e.what());
    }
  }
  /// The value of this node itself (an item of a sequence).
  template <typename T>
  T as() const;

  void allow_only(std::initializer_list<std::string_view> keys) const;
  void allow_only(std::span<const std::string_view> keys) const;

  /// "FILE:LINE: KEY: 'VALUE': EXPECTED" for the value under `key`, or for this node when `key` is empty.
  [[noreturn]] void fail(std::string_view key, const std::string& expected) const;

 private:
  using settings = std::map<std::string, location>;

  config_node(const YAML::Node& node, std::string file, std::string path,
              std::shared_ptr<settings> set)
      : node_(node), file_(std::move(file)), path_(std::move(path)), set_(std::move(set)) {}
  static config_node parse(const std::string& text, const std::string& name,
                           YAML::NodeType::value root);
  std::string path_to(std::string_view key) const;
  location where(const YAML::Node& node, std::string_view key) const;
  YAML::Node child(std::string_view key) const;

  YAML::Node node_;
  std::string file_;
  std::string path_;               ///< dotted path of this node from the root
  std::shared_ptr<settings> set_;  ///< what was set, by dotted path; one for the whole file
};

}  // namespace attnsim
