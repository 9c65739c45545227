// A result as one HTML page for people: it holds all it needs, loads nothing, and says in tables what its charts show.
//
//   page p{.title = "Plan", .answer = "mesh 8x1: 1.635 s", .result = to_json(...)};
//   p.sections.push_back(ranking(candidates));
//   write_file("--report", "plan.html", p.html());
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "report/table.hpp"

namespace attnsim::report {

struct section {
  std::string title;
  std::string note;              ///< what is shown
  nlohmann::ordered_json chart;  ///< its "kind" and what that needs, see report.js; null: none
  std::string drawing;           ///< SVG
  table rows;
};

struct page {
  std::string title;
  std::string answer;  ///< the result in a sentence
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::string> warnings;
  std::vector<section> sections;
  nlohmann::ordered_json result;  ///< what --format json prints

  /// A whole file. Its element <script type="application/json" id="data"> has data().
  std::string html() const;

  /// The same in pieces, for a page that shows answers as they come (web/): what stands in <main>, and for report.js
  /// {schema, result, charts}.
  std::string body() const;
  nlohmann::ordered_json data() const;
};

}  // namespace attnsim::report
