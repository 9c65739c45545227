#include "report/page.hpp"

#include <fmt/format.h>

#include "formats/escaped.hpp"
#include "report/assets.hpp"

namespace attnsim::report {
namespace {

/// JSON that no HTML parser takes for the end of its element.
std::string in_script(const nlohmann::ordered_json& data) {
  std::string out;
  const auto text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (const char c : text) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string to_html(const section& s, std::size_t number) {
  auto out = fmt::format("<section aria-labelledby=\"s{0}\">\n<h2 id=\"s{0}\">{1}</h2>\n", number,
                         escaped(s.title));
  if (!s.note.empty()) out += fmt::format("<p class=\"note\">{}</p>\n", escaped(s.note));
  if (!s.chart.is_null()) out += fmt::format("<figure data-section=\"{}\"></figure>\n", number);
  if (!s.drawing.empty()) {
    out += fmt::format(
        "<div class=\"drawing\" tabindex=\"0\" role=\"img\" aria-label=\"{}\">{}</div>\n",
        escaped(s.title), s.drawing);
  }
  if (!s.rows.empty()) {
    out += fmt::format(
        "<details open><summary>Table</summary>\n<div class=\"rows\" "
        "tabindex=\"0\">{}</div></details>\n",
        s.rows.html());
  }
  return out + "</section>\n";
}

}  // namespace

std::string page::body() const {
  auto html = fmt::format("<header>\n<h1>{}</h1>\n<p class=\"answer\">{}</p>\n<dl>\n",
                          escaped(title), escaped(answer));
  for (const auto& [name, value] : facts)
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
  html += "</dl>\n";
  for (const auto& warning : warnings)
    html += fmt::format("<p class=\"warning\">{}</p>\n", escaped(warning));
  html +=
      "</header>\n<noscript><p class=\"note\">Scripts are off: the tables hold all "
      "values.</p></noscript>\n";
  for (std::size_t i = 0; i < sections.size(); ++i) html += to_html(sections[i], i);
  return html;
}

nlohmann::ordered_json page::data() const {
  auto charts = nlohmann::ordered_json::array();
  for (const auto& s : sections) charts.push_back(s.chart);
  return {{"schema", "attnsim.report.1"}, {"result", result}, {"charts", charts}};
}

std::string page::html() const {
  return fmt::format(fmt::runtime(page_template), fmt::arg("title", escaped(title)),
                     fmt::arg("body", body()), fmt::arg("data", in_script(data())),
                     fmt::arg("style", style), fmt::arg("script", script), fmt::arg("d3", d3),
                     fmt::arg("d3_licence", d3_licence));
}

}  // namespace attnsim::report
