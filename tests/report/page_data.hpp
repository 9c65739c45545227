// What a page's scripts read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attnsim::report {

/// As a browser finds it: from the element's start to the first end tag.
inline nlohmann::ordered_json data_of(const std::string& html) {
  const std::string start = "<script type=\"application/json\" id=\"data\">";
  const auto from = html.find(start) + start.size();
  return nlohmann::ordered_json::parse(html.substr(from, html.find("</script", from) - from));
}

}  // namespace attnsim::report
