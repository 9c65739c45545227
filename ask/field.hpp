// A row of the table of a question's fields: what views need to ask for a value and to show it.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"
#include "model/spelling.hpp"

namespace attnsim::ask {

enum class field_group { cluster, attention, strategy, reading, step };

template <typename Question>
struct field_of {
  std::string_view name;  ///< "kv-heads"
  field_group group;
  std::string_view means;
  std::string_view usual;  ///< the default, as it is written; empty: see `means`
  /// Throws std::invalid_argument that says what is expected, or an error of its own.
  void (*read)(Question&, const std::string& text);
  /// As `read` takes it; empty: not given, or as usual.
  std::string (*write)(const Question&);
  /// A switch is true or false; a list takes one more value at each reading.
  enum class form { value, on_off, list } is = form::value;
  std::vector<std::string> (*choices)() = nullptr;  ///< values that have a name; null: none
  bool is_open = false;                             ///< takes others too, such as a file
};

/// Reads the text of one value. Throws input_error about the field.
template <typename Question>
void set(Question& q, const field_of<Question>& f, const std::string& text) {
  try {
    if (f.choices != nullptr && !f.is_open) {
      const auto choices = f.choices();
      if (std::find(choices.begin(), choices.end(), text) == choices.end())
        throw std::invalid_argument(expected_one_of(text, choices));
    }
    f.read(q, text);
  } catch (const std::invalid_argument& e) {
    throw input_error(asked(std::string(f.name)), text, e.what());
  }
}

}  // namespace attnsim::ask
