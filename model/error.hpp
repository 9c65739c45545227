// Errors a user can cause. Each is one line that says where, what was found and what is expected; the command line
// maps input_error to exit code 2 and infeasible to exit code 3.
#pragma once

#include <stdexcept>
#include <string>

namespace attnsim {

/// What a message is about: a place in a file, or a field of a question (ask/question.hpp). A field is called as it is in
/// the table of fields; a view words it as its user knows it: a flag, a keyword, a key.
struct location {
  std::string
      text;  ///< as messages begin: "cluster.yaml:12: nodes", "kv-heads", "set: nics.bandwidth"
  std::string field;  ///< with which `text` begins; empty: a place in a file

  operator const std::string&() const { return text; }
};

inline location asked(const std::string& field) {
  return {field, field};
}
inline location operator+(location where, const std::string& more) {
  where.text += more;
  return where;
}

namespace detail {

class located_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  located_error(const location& where, const std::string& value, const std::string& expected)
      : std::runtime_error(where.text + ": '" + value + "': " + expected), field_(where.field) {}

  located_error(const location& where, const std::string& what)
      : std::runtime_error(where.text + ": " + what), field_(where.field) {}

  /// A whole message, which begins with the field.
  explicit located_error(const location& message)
      : std::runtime_error(message.text), field_(message.field) {}

  /// With which the message begins; empty: it is not about a field.
  const std::string& field() const { return field_; }

  /// The message with another name of the field.
  location about(const std::string& field) const {
    return {field + std::string(what()).substr(field_.size()), field};
  }

 private:
  std::string field_;
};

}  // namespace detail

/// Bad input: "FILE:LINE: KEY: 'VALUE': EXPECTED" or "FIELD: 'VALUE': EXPECTED".
class input_error : public detail::located_error {
 public:
  using located_error::located_error;

  /// `where` is a place in a file: "file.yaml:12: key".
  input_error(const std::string& where, const std::string& value, const std::string& expected)
      : located_error(location{where, ""}, value, expected) {}
};

/// A well-formed request that cannot be met (heads not divisible, memory); names the nearest feasible ones.
class infeasible : public detail::located_error {
 public:
  using located_error::located_error;
};

}  // namespace attnsim
