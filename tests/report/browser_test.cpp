// Pages in headless Chromium: charts are drawn with the values of the page's JSON, keys work, the
// console stays empty, and without D3 the tables are there.
#include <gmock/gmock.h>

#include <cstdlib>
#include <regex>
#include <sstream>

#include "report/assets.hpp"
#include "report/comparison.hpp"
#include "report/crossovers.hpp"
#include "report/page.hpp"
#include "report/pages.hpp"
#include "tests/report/page_data.hpp"
#include "tests/ring_on_star.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::report {
namespace browser_test {

using testing::HasSubstr;
using testing::Not;

struct shown_page {
  std::string document;  ///< after its scripts
  std::string console;
};

std::string read_all(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

shown_page show(const std::string& html) {
  const temporary_folder folder;
  const auto page = folder.write("page.html", html);
  const auto command = "HOME=" + folder.file("") +
                       " " ATTNSIM_CHROMIUM
                       " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
                       " --enable-logging=stderr --user-data-dir=" +
                       folder.file("profile") + " --dump-dom file://" + page + " >" +
                       folder.file("out") + " 2>" + folder.file("err");
  EXPECT_EQ(std::system(command.c_str()), 0) << read_all(folder.file("err"));
  shown_page shown{.document = read_all(folder.file("out"))};
  std::istringstream messages(read_all(folder.file("err")));
  for (std::string line; std::getline(messages, line);) {
    if (line.find("CONSOLE") != std::string::npos) shown.console += line + "\n";
  }
  return shown;
}

/// The section's part of the document.
std::string section_of(const std::string& document, int number) {
  const auto from = document.find("<section aria-labelledby=\"s" + std::to_string(number) + "\"");
  return document.substr(from, document.find("</section>", from) - from);
}

std::vector<double> values_of(const std::string& text, const std::string& attribute) {
  const std::regex pattern(attribute + "=\"([^\"]*)\"");
  std::vector<double> values;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i)
    values.push_back(std::stod((*i)[1]));
  return values;
}

class browser : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(ATTNSIM_CHROMIUM).empty()) GTEST_SKIP() << "no Chromium (package chromium)";
  }
  void needs_d3() {
    if (d3.empty()) GTEST_SKIP() << "built without D3 (package node-d3)";
  }
};

page of_all_kinds() {
  const auto c = star(4);
  ask::predicted_run run(c, predict(c, problem(4), ring(4), 4, pass_kind::both));
  auto p = page_of(c, run);
  p.sections.push_back(crossovers({.of = "tokens",
                                   .values = {"1K", "2K", "4K"},
                                   .times = {{"ring", {seconds(1), seconds(4), seconds(9)}},
                                             {"mesh", {seconds(), seconds(3), seconds(5)}}}},
                                  ""));
  p.sections.push_back(predicted_against(
      "measured", "s", {{"", "total", 0.002, 0.0019, 0.0018, 0.0021}, {"", "rest", 1e-3, 2e-3}}));
  std::vector<comparison> many;
  for (int i = 1; i <= 30; ++i) many.push_back({"series", "figure", 1.0 * i, 1.25 * i});
  p.sections.push_back(predicted_against("published", "ms", many));
  return p;
}

TEST_F(browser, draws_the_values_of_the_json) {
  needs_d3();
  const auto html = of_all_kinds().html();
  const auto charts = data_of(html)["charts"];
  const auto shown = show(html);
  EXPECT_EQ(shown.console, "");
  std::vector<double> wanted;
  for (const auto& v : charts[0]["rows"][0]["values"]) {
    if (v > 0) wanted.push_back(v);
  }
  const auto bars = section_of(shown.document, 0);
  EXPECT_EQ(values_of(bars, "data-value"), wanted);
  EXPECT_THAT(values_of(bars, "data-total"), testing::ElementsAre(charts[0]["rows"][0]["total"]));
  EXPECT_EQ(values_of(section_of(shown.document, 2), "data-value").size(),
            charts[2]["intervals"].size());
  EXPECT_THAT(section_of(shown.document, 3), HasSubstr("% used</title>"));
  EXPECT_THAT(values_of(section_of(shown.document, 5), "data-value"),
              testing::ElementsAre(1, 4, 9, 3, 5));
  EXPECT_THAT(values_of(section_of(shown.document, 6), "data-value"),
              testing::ElementsAre(0.002, 0.0019, 1e-3, 2e-3));
  EXPECT_EQ(values_of(section_of(shown.document, 7), "data-value").size(), 30u);
}

/// The page, with a script that uses it.
std::string used_by(std::string html, const std::string& script) {
  return html.replace(html.rfind("</body>"), 0, "<script>" + script + "</script>");
}

TEST_F(browser, nothing_leaves_its_chart_and_no_texts_overlap) {
  needs_d3();
  const auto shown = show(used_by(of_all_kinds().html(), R"js(
    const box = e => e.getBoundingClientRect();
    let outside = 0, overlapping = "";
    for (const svg of document.querySelectorAll("figure svg")) {
      const frame = box(svg), texts = [...svg.querySelectorAll("text")].filter(e => e.checkVisibility());
      const inside = r => r.left >= frame.left - 1 && r.right <= frame.right + 1 && r.top >= frame.top - 1 && r.bottom <= frame.bottom + 1;
      outside += [...svg.querySelectorAll(".mark"), ...texts].filter(e => !inside(box(e))).length;
      texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
        const p = box(a), q = box(b);
        if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 3 && q.top < p.bottom - 3)
          overlapping += ` ${a.textContent}/${b.textContent}`;
      }));
    }
    document.body.dataset.outside = outside;
    document.body.dataset.overlapping = overlapping;
  )js"));
  EXPECT_THAT(shown.document, HasSubstr("data-outside=\"0\""));
  EXPECT_THAT(shown.document, HasSubstr("data-overlapping=\"\""));
}

TEST_F(browser, arrow_keys_walk_and_plus_zooms) {
  needs_d3();
  const auto press = [](int section, const std::string& key) {
    return "document.querySelector('[data-section=\"" + std::to_string(section) +
           "\"] svg').dispatchEvent(new KeyboardEvent('keydown', {key: '" + key + "'}));";
  };
  const auto shown =
      show(used_by(of_all_kinds().html(), press(6, "ArrowRight") + press(6, "ArrowRight") +
                                              press(2, "+") + press(2, "+") + press(2, "+")));
  EXPECT_EQ(shown.console, "");
  EXPECT_THAT(section_of(shown.document, 6),
              HasSubstr("aria-live=\"polite\">total: measured 2.000 ms, predicted 1.900 ms "
                        "(-5.0%)</figcaption>"));
  // Six steps of a ring forward and backward; an eighth of the time about the middle shows less.
  const auto marks = [](const std::string& document) {
    const std::regex mark("class=\"mark\"");
    const auto section = section_of(document, 2);
    return std::distance(std::sregex_iterator(section.begin(), section.end(), mark), {});
  };
  const auto all = marks(show(of_all_kinds().html()).document), some = marks(shown.document);
  EXPECT_GT(some, 0);
  EXPECT_LT(some, all);
}

TEST_F(browser, without_d3_the_tables_stay) {
  auto html = of_all_kinds().html();
  if (!d3.empty()) html.erase(html.find(d3), d3.size());
  const auto shown = show(html);
  EXPECT_EQ(shown.console, "");
  EXPECT_THAT(shown.document, HasSubstr("<details open"));
  EXPECT_THAT(section_of(shown.document, 0), Not(HasSubstr("<svg")));
}

}  // namespace browser_test
}  // namespace attnsim::report
