#include "formats/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnsim::formats {

using nlohmann::json;

json parse_json(const source& from, int deepest, const json_filter& keep) {
  const auto filter = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest) {
      fail_at(from, 1, fmt::format("expected nesting of at most {}", deepest));
    }
    const bool ends =
        event == json::parse_event_t::object_end || event == json::parse_event_t::array_end;
    return !ends || !keep || keep(depth, value);
  };
  try {
    return json::parse(from.text, filter);
  } catch (const json::parse_error& e) {
    const auto size = static_cast<std::ptrdiff_t>(std::min(e.byte, from.text.size()));
    const auto lines = std::count(from.text.begin(), from.text.begin() + size, '\n');
    fail_at(from, 1 + static_cast<std::size_t>(lines), "not valid JSON");
  } catch (const json::out_of_range&) {
    fail_at(from, 1, "expected numbers that a double holds");
  }
}

}  // namespace attnsim::formats
