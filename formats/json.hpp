// JSON by nlohmann, behind one gate: deep nesting and numbers beyond a double are refused, and
// messages name the line.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "formats/source.hpp"

namespace attnsim::formats {

/// Whether to keep a value that ended at this depth (0: the whole text).
using json_filter = std::function<bool(int depth, const nlohmann::json& value)>;

/// Objects and lists that `keep` refuses are dropped as soon as they are read. Throws input_error.
nlohmann::json parse_json(const source&, int deepest, const json_filter& keep = {});

}  // namespace attnsim::formats
