#include "report/page.hpp"

#include <gmock/gmock.h>

#include "tests/report/page_data.hpp"

namespace attnsim::report {
namespace page_test {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* nasty = "</script><b>&\"'{}<!--";

page with_a_nasty_name() {
  page p{.title = nasty,
         .answer = nasty,
         .facts = {{nasty, nasty}},
         .warnings = {nasty},
         .result = {{"cluster", nasty}, {"time_s", 0.1}}};
  section s{.title = nasty,
            .note = nasty,
            .chart = {{"kind", "bars"}, {"rows", {nasty}}},
            .rows = table({nasty})};
  s.rows.add({nasty});
  p.sections.push_back(std::move(s));
  return p;
}

TEST(page, holds_the_result_and_the_charts) {
  const auto p = with_a_nasty_name();
  const auto data = data_of(p.html());
  EXPECT_EQ(data["schema"], "attnsim.report.1");
  EXPECT_EQ(data["result"], p.result);
  EXPECT_EQ(data["charts"], ordered_json::array({p.sections[0].chart}));
}

TEST(page, escapes_names) {
  const auto html = with_a_nasty_name().html();
  EXPECT_THAT(html, HasSubstr("<h1>&lt;/script&gt;&lt;b&gt;&amp;&quot;'{}&lt;!--</h1>"));
  EXPECT_THAT(html, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(html, Not(HasSubstr("<!--")));
}

TEST(page, loads_nothing) {
  const auto html = with_a_nasty_name().html();
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const auto* reference : {"src=\"", "href=\"", "url(\"", "@import", "<link", "<iframe"})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
}

TEST(page, draws_only_where_there_is_a_chart) {
  page p{.title = "t", .sections = {{.title = "words only", .note = "n"}}};
  const auto html = p.html();
  EXPECT_THAT(html, HasSubstr("<p class=\"note\">n</p>"));
  EXPECT_THAT(html, Not(HasSubstr("<figure data-section=\"0")));
  EXPECT_THAT(html, Not(HasSubstr("<details")));
}

}  // namespace page_test
}  // namespace attnsim::report
