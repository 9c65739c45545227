// Every importer reads each good file of ../shared/inputs and of tests/formats/data to the same cluster, whatever a clipboard,
// an editor, a terminal or a page put around and into it.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "formats/cluster_file.hpp"
#include "tests/formats/import.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::formats {
namespace noise_test {

namespace fs = std::filesystem;

/// The cluster that a file makes, without the comments; empty: none.
std::string cluster_of(const std::string& path, const std::string& as) {
  try {
    const auto file =
        write_cluster_file(combine({read_topology(read_source(path), {}, as)}, {}), {.name = "c"});
    return file.text.substr(file.text.find("name: c"));
  } catch (const input_error&) {
    return "";
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

std::string wide(const std::string& text) {
  std::string bytes = "\xff\xfe";
  for (const char c : text) bytes += {c, '\0'};
  return bytes;
}

using noise = std::string (*)(const std::string&);

const std::map<std::string, noise> of_all{
    {"mark and line ends",
     [](const std::string& t) { return "\xef\xbb\xbf" + replaced(t, "\n", "\r\n"); }},
    {"blank lines", [](const std::string& t) { return "\n \n" + t + "\n\n \n"; }},
    {"fence",
     [](const std::string& t) { return "My machine:\n\n```text\n" + t + "\n```\nWhat now?\n"; }},
    {"escapes",
     [](const std::string& t) { return "\x1b[?2004l\x1b[1m" + t + "\x1b[0m\x1b]0;me@node1\a"; }},
    {"prompts",
     [](const std::string& t) { return "me@node1:~$ show topology\n" + t + "\nme@node1:~$ \n"; }},
    {"hard spaces", [](const std::string& t) { return replaced(t, " ", "\xc2\xa0"); }}};

/// Of matrices, which stand among other output.
const std::map<std::string, noise> of_matrices{
    {"titles",
     [](const std::string& t) {
       return "GPU topology of GPU0 and others:\n76 NICs found\n" + t + "\n  X    = Self\n";
     }},
    {"quote", [](const std::string& t) { return "> " + replaced(t, "\n", "\n> "); }}};

std::map<std::string, noise> noises_of(const std::string& importer) {
  auto all = of_all;
  if (importer == "nvidia-smi") all.insert(of_matrices.begin(), of_matrices.end());
  return all;
}

std::vector<std::string> files_of(const importer& i) {
  std::vector<std::string> files;
  for (const std::string folder : {"../shared/inputs", "tests/formats/data"}) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file() && i.recognises(read_source(entry.path().string()).text))
        files.push_back(entry.path().string());
    }
  }
  return files;
}

class noisy_files : public testing::TestWithParam<importer> {};

TEST_P(noisy_files, are_read_as_clean_ones) {
  const std::string as(GetParam().name);
  const temporary_folder folder;
  std::size_t good = 0;
  for (const auto& path : files_of(GetParam())) {
    const auto clean = cluster_of(path, as);
    if (clean.empty()) continue;
    ++good;
    const auto text = read_source(path).text;
    for (const auto& [name, add] : noises_of(as)) {
      const auto noisy = folder.write(fs::path(path).filename().string(), add(text));
      EXPECT_EQ(cluster_of(noisy, as), clean) << path << " with " << name;
      EXPECT_EQ(cluster_of(noisy, ""), clean) << path << " with " << name << ", recognised";
    }
  }
  EXPECT_GT(good, 0u);
}

TEST_P(noisy_files, may_be_utf_16) {
  const std::string as(GetParam().name);
  const temporary_folder folder;
  for (const auto& path : files_of(GetParam())) {
    const auto text = read_source(path).text;
    const bool ascii =
        std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
    if (!ascii) continue;
    const auto noisy = folder.write(fs::path(path).filename().string(), wide(text));
    EXPECT_EQ(cluster_of(noisy, as), cluster_of(path, as)) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(importers, noisy_files,
                         testing::ValuesIn(known_importers().begin(), known_importers().end()),
                         [](const auto& i) {
                           return replaced(std::string(i.param.name), "-", "_");
                         });

}  // namespace noise_test
}  // namespace attnsim::formats
