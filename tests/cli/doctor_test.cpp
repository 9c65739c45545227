// attnsim doctor, and the manual page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/cluster/cluster.hpp"
#include "tests/cli/program.hpp"

namespace attnsim {
namespace doctor_test {

using testing::HasSubstr;

/// By what they are of.
std::map<std::string, nlohmann::json> findings() {
  const auto r = run_program("doctor --format json");
  EXPECT_EQ(r.exit_code, 0) << r.messages;
  std::map<std::string, nlohmann::json> all;
  const auto page = nlohmann::json::parse(r.output);
  for (const auto& f : page["findings"]) all[f["what"]] = f;
  return all;
}

TEST(doctor, finds_what_every_build_has) {
  const auto found = findings();
  for (const auto* what :
       {"program", "topologies", "processors", "kernels cpu", "transport inprocess"}) {
    ASSERT_TRUE(found.contains(what)) << what;
    EXPECT_EQ(found.at(what)["ready"], true) << what;
  }
  EXPECT_THAT(found.at("topologies")["says"].get<std::string>(),
              HasSubstr(std::to_string(shipped_clusters().size()) + " clusters"));
}

TEST(doctor, tells_what_is_not_ready_why) {
  for (const auto& [what, f] : findings()) EXPECT_NE(f["says"], "") << what;
}

TEST(doctor, has_a_row_for_each_finding_in_every_format) {
  const auto count = findings().size();
  for (const auto* format : {"table", "csv"}) {
    const auto r = run_program(std::string("doctor --format ") + format);
    EXPECT_EQ(std::count(r.output.begin(), r.output.end(), '\n'), count + 1) << format;
  }
}

TEST(manual, has_every_command_and_flag) {
  const auto r = run_program("reference man");
  EXPECT_EQ(r.exit_code, 0) << r.messages;
  EXPECT_TRUE(r.output.starts_with(".TH ATTNSIM 1 "));
  for (const auto* part :
       {".SS plan\n", ".SS topology import\n", ".SS doctor\n", ".B \\-\\-kv\\-heads\n"})
    EXPECT_THAT(r.output, HasSubstr(part));
}

TEST(manual, has_no_line_that_roff_would_take_for_a_request) {
  const auto page = run_program("reference man").output;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('.')) continue;
    const auto request = line.substr(1, line.find(' ') - 1);
    EXPECT_THAT((std::vector<std::string>{"TH", "SH", "SS", "TP", "PP", "B", "I", "nf", "fi"}),
                testing::Contains(request))
        << line;
  }
}

}  // namespace doctor_test
}  // namespace attnsim
