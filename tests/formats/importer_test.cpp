#include "formats/importer.hpp"

#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"

namespace attnsim::formats {
namespace importer_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string names =
    "nccl-topology, nccl-graph, rocm-smi, nvidia-smi, hwloc, slurm, slurm-yaml, topograph, "
    "ibnetdiscover, astra-sim, htsim, simgrid, taccl, graphml, attnsim";

TEST(read_topology, tells_what_it_knows) {
  EXPECT_ERROR(read_text("what is this?"), input_error,
               "f: of no known format; --as one of: " + names);
  EXPECT_ERROR(read_text("", {}, "visio"), input_error, "--as: 'visio': expected one of: " + names);
}

TEST(read_topology, as_overrides_what_the_text_shows) {
  EXPECT_ERROR(read_text("<graphs/>", {}, "nccl-topology"), input_error,
               "f:1: expected the element <system>");
}

TEST(read_topology, takes_what_a_markdown_fence_holds) {
  const std::string fabric = "SwitchName=s Nodes=n[1-3]\n";
  const auto t = read_text("My fabric:\n\n```\n" + fabric + "```\nAny idea?\n");
  EXPECT_EQ(t.count(part_kind::host), 3u);
  EXPECT_THAT(t.said.warnings, IsEmpty());
  // Lines keep their numbers, and a fence may stay open.
  EXPECT_ERROR(read_text("text\n```conf\n" + fabric + "SwitchName=s Nodes=x\n"), input_error,
               "f:4: SwitchName: 's': expected a name that no other switch has");
}

TEST(read_topology, warns_of_what_further_fences_hold) {
  const std::string fabric = "```\nSwitchName=s Nodes=n[1-3]\n```\n";
  EXPECT_THAT(read_text(fabric + fabric + "and\n" + fabric).said.warnings,
              ElementsAre("f: 2 fenced blocks after the first: not read"));
}

TEST(known_importers, describe_themselves) {
  EXPECT_EQ(names_of(known_importers()), names);
  for (const auto& i : known_importers()) {
    EXPECT_FALSE(i.recognises("")) << i.name;
    for (const auto text : {i.name, i.what, i.reads, i.assumes, i.refuses}) {
      EXPECT_THAT(text, Not(IsEmpty())) << i.name;
      EXPECT_THAT(std::string(text), Not(HasSubstr("|"))) << i.name;  // docs/inputs.md: a table
    }
  }
}

/// "toy 4": so many devices under one switch.
constexpr importer toy{.name = "toy",
                       .what = "a toy's box",
                       .reads = "the number of devices",
                       .assumes = "1 GB/s",
                       .refuses = "no devices",
                       .recognises = [](std::string_view text) { return text.starts_with("toy "); },
                       .read =
                           [](const source& from, const settings& given) {
                             const auto devices =
                                 to_number<int>(words_of(lines_of(from.text).front().text)[1]);
                             if (!devices || *devices < 1)
                               fail_at(from, 1, "expected a number of devices");
                             topology t{.what = scope::node, .device = given.device};
                             const auto hub = t.add(part_kind::switch_, "hub", 0);
                             for (int d = 0; d < *devices; ++d)
                               t.join(t.add(part_kind::device, fmt::format("gpu{}", d), 0), hub,
                                      bandwidth(1e9), {}, link_kind::pcie);
                             t.said.read = {counted(t.count(part_kind::device), "device")};
                             return t;
                           }};

TEST(read_topology, takes_importers_from_outside) {
  std::vector<importer> all{toy};
  all.insert(all.end(), known_importers().begin(), known_importers().end());
  const auto t = read_topology({"d/f", "toy 4\n"}, {.device = "l20"}, "", all);
  EXPECT_EQ(counts_of(t), (counts{4, 0, 1, 0, 4}));
  EXPECT_EQ(t.device, "l20");
  EXPECT_THAT(t.said.read, ElementsAre("f: 4 devices"));
  EXPECT_ERROR(read_topology({"f", "toy\tnone\n"}, {}, "toy", all), input_error,
               "f:1: expected a number of devices");
  EXPECT_ERROR(read_topology({"f", "?"}, {}, "", all), input_error,
               "f: of no known format; --as one of: toy, " + names);
  // The others still read theirs.
  EXPECT_EQ(read_topology({"f", "SwitchName=s Nodes=a,b\n"}, {}, "", all).count(part_kind::host),
            2u);
}

}  // namespace importer_test
}  // namespace attnsim::formats
