// Output files: what is written where, and what is refused before any work.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/cli/program.hpp"

namespace attnsim {
namespace output_files_test {

namespace fs = std::filesystem;

const std::string layer = " --seq 16K --heads 8 --quiet ";
const std::string predict = "predict dgx-h100 --nodes 1" + layer;

/// The page that a plain file gets.
std::string page_of(const std::string& command) {
  const temporary_folder folder;
  EXPECT_EQ(run_program(command + " --report " + folder.file("page.html")).exit_code, 0);
  return read_all(folder.file("page.html"));
}

void expect_refused(const std::string& command, const std::string& message) {
  const auto r = run_program(command);
  EXPECT_EQ(r.exit_code, 2) << command;
  EXPECT_EQ(r.output, "") << command;
  EXPECT_EQ(r.messages, "attnsim: " + message + "\n");
}

/// Nothing but `names`: no file that was begun.
void expect_only(const temporary_folder& folder, const std::set<std::string>& names) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder.file("")))
    found.insert(entry.path().filename().string());
  EXPECT_EQ(found, names);
}

TEST(output_file, that_is_a_device_stays_one) {
  struct stat before {
  }, after{};
  ASSERT_EQ(stat("/dev/null", &before), 0);
  EXPECT_EQ(run_program(predict + "--report /dev/null --trace /dev/null").exit_code, 0);
  ASSERT_EQ(stat("/dev/null", &after), 0);
  EXPECT_EQ(after.st_rdev, before.st_rdev);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
}

TEST(output_file, that_is_full_says_so) {
  expect_refused("topology import dgx-h100 --quiet --out /dev/full",
                 "--out: '/dev/full': expected a file that can be written (No space left on "
                 "device)");
}

TEST(output_file, that_is_a_fifo_is_written_through) {
  const temporary_folder folder;
  const auto fifo = folder.file("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto r =
      run_program(predict + "--report " + fifo,
                  "sh -c 'cat " + fifo + " >" + folder.file("read") + " & \"$@\"; " + "wait' sh");
  EXPECT_EQ(r.exit_code, 0) << r.messages;
  EXPECT_EQ(read_all(folder.file("read")), page_of(predict));
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST(output_file, that_is_a_link_stays_one) {
  const temporary_folder folder;
  fs::create_directory(folder.file("elsewhere"));
  const auto page = folder.write("elsewhere/page.html", "old");
  fs::create_symlink("elsewhere/page.html", folder.file("link.html"));
  fs::create_symlink("link.html", folder.file("second.html"));
  ASSERT_EQ(run_program(predict + "--report " + folder.file("second.html")).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder.file("link.html")));
  EXPECT_TRUE(fs::is_symlink(folder.file("second.html")));
  EXPECT_FALSE(fs::is_symlink(page));
  EXPECT_EQ(read_all(page), page_of(predict));
  expect_only(folder, {"elsewhere", "link.html", "second.html"});
}

TEST(output_file, that_a_link_names_is_made) {
  const temporary_folder folder;
  fs::create_symlink("page.html", folder.file("link.html"));
  ASSERT_EQ(run_program(predict + "--report " + folder.file("link.html")).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder.file("link.html")));
  EXPECT_EQ(read_all(folder.file("page.html")), page_of(predict));
}

/// Whoever knows the file's name could lay a link where its beginnings are put.
TEST(output_file, is_begun_under_a_name_that_nobody_knows) {
  const temporary_folder folder;
  const auto victim = folder.write("victim", "untouched");
  for (const auto* name : {"page.html.partial", "page.html.tmp", "page.html.rows", "page.html~"})
    fs::create_symlink("victim", folder.file(name));
  ASSERT_EQ(run_program(predict + "--report " + folder.file("page.html")).exit_code, 0);
  EXPECT_EQ(read_all(victim), "untouched");
}

TEST(output_file, keeps_who_may_read_it) {
  const temporary_folder folder;
  const auto page = folder.write("page.html", "old");
  fs::permissions(page, fs::perms(0640));
  ASSERT_EQ(run_program(predict + "--report " + page).exit_code, 0);
  EXPECT_EQ(fs::status(page).permissions(), fs::perms(0640));
  const auto made = folder.file("new.html");
  ASSERT_EQ(
      run_program(predict + "--report " + made, "sh -c 'umask 027; exec \"$@\"' sh").exit_code, 0);
  EXPECT_EQ(fs::status(made).permissions(), fs::perms(0640));
}

TEST(output_file, that_is_an_open_descriptor_is_written_there) {
  const auto direct = run_program("topology import dgx-h100 --quiet");
  for (const auto* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    const auto r = run_program(std::string("topology import dgx-h100 --quiet --out ") + name);
    EXPECT_EQ(r.exit_code, 0) << r.messages;
    EXPECT_EQ(r.output, direct.output) << name;
  }
}

TEST(output_file, beyond_the_shells_limit_leaves_nothing) {
  const temporary_folder folder;
  const auto page = folder.file("page.html");
  const auto r = run_program(predict + "--report " + page, "sh -c 'ulimit -f 8; exec \"$@\"' sh");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.messages, "attnsim: --report: '" + page +
                            "': expected a file that can be written (File too large)\n");
  expect_only(folder, {});
}

TEST(output_file, is_refused_where_it_cannot_be_written) {
  const temporary_folder folder;
  const auto file = folder.write("file", "");
  const auto loop = folder.file("loop");
  fs::create_symlink("loop", loop);
  const std::string whole = "expected a file that can be written (";
  const std::string place = "expected a file in a folder that can be written (";
  const auto none = folder.file("none"), inside = folder.file("file/page.html");
  const auto in_none = none + "/page.html", itself = folder.file("");
  for (const auto& [path, reason] : std::vector<std::pair<std::string, std::string>>{
           {in_none, place + none + ": No such file or directory)"},
           {inside, place + file + ": Not a directory)"},
           {itself, whole + "Is a directory)"},
           {loop, whole + "Too many levels of symbolic links)"}}) {
    expect_refused(predict + "--report " + path, "--report: '" + path + "': " + reason);
  }
}

TEST(output_file, is_refused_where_nothing_may_be_written) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const temporary_folder folder;
  fs::create_directory(folder.file("closed"));
  fs::permissions(folder.file("closed"), fs::perms(0555));
  const auto page = folder.file("closed/page.html"), kept = folder.write("kept.html", "old");
  fs::permissions(kept, fs::perms(0444));
  expect_refused(predict + "--report " + page,
                 "--report: '" + page + "': expected a file in a folder that can be written (" +
                     folder.file("closed") + ": Permission denied)");
  expect_refused(
      predict + "--report " + kept,
      "--report: '" + kept + "': expected a file that can be written (Permission denied)");
}

/// Every command, with each of its outputs.
TEST(output_file, is_refused_before_any_work) {
  const temporary_folder folder;
  const auto sweep = folder.write("s.yaml", "cluster: no-such-cluster\nseq: 1K\n");
  const std::string reason =
      ": '/nowhere/f.csv': expected a file in a folder that can be written (/nowhere: No such file "
      "or directory)";
  const std::string measured = "reproduce/measured/h200/held_out_host_memory.json";
  for (const auto& [command, flag] : std::vector<std::pair<std::string, std::string>>{
           {"predict no-such-cluster" + layer, "--trace"},
           {"predict no-such-cluster" + layer, "--report"},
           {"plan no-such-cluster" + layer, "--report"},
           {"plan no-such-cluster --what-if heads=1..2" + layer, "--report"},
           {"sweep " + sweep, "--out"},
           {"reproduce", "--report"},
           {"topology import /nowhere/topo.xml", "--out"},
           {"topology show no-such-cluster", "--svg"},
           {"topology export no-such-cluster --to graphml", "--out"},
           {"compare no-such-cluster " + measured, "--points"},
           {"compare no-such-cluster " + measured, "--report"},
           {"calibrate --device no-such-device --measurements " + measured, "--out"},
           {"calibrate --device no-such-device --out /dev/null", "--report"},
           {"measure", "--out"},
           {"measure --out /dev/null", "--held-out"},
           {"validate no-such-cluster" + layer, "--trace"},
           {"validate no-such-cluster" + layer, "--timelines"},
           {"validate no-such-cluster" + layer, "--report"}}) {
    if (run_program(command.substr(0, command.find(' ')) + " --help").exit_code != 0) continue;
    expect_refused(command + " " + flag + " /nowhere/f.csv", flag + reason);
  }
}

TEST(output_file, is_not_what_is_read) {
  const temporary_folder folder;
  const auto text = run_program("topology import dgx-h100 --quiet").output;
  const auto cluster = folder.write("c.yaml", text);
  fs::create_hard_link(cluster, folder.file("linked.yaml"));
  fs::create_symlink("c.yaml", folder.file("link.yaml"));
  const auto device = folder.write("d.yaml", read_all("topologies/devices/h100-sxm5.yaml"));
  const auto sweep = folder.write("s.csv", "cluster: " + cluster + "\nseq: 1K\n");
  const auto measured = folder.write("m.json", "{}");
  const auto same = [](const std::string& flag, const std::string& path, const std::string& other) {
    return flag + ": '" + path + "': expected another file than " + other;
  };
  for (const auto& name :
       {cluster, folder.file("linked.yaml"), folder.file("link.yaml"), folder.file("./c.yaml")}) {
    expect_refused("predict " + cluster + layer + "--report " + name,
                   same("--report", name, "CLUSTER"));
  }
  expect_refused("predict dgx-h100" + layer + "--device " + device + " --trace " + device,
                 same("--trace", device, "--device"));
  expect_refused("plan dgx-h100" + layer + "--set device=" + device + " --report " + device,
                 same("--report", device, "--set device"));
  expect_refused("topology import " + cluster + " --out " + cluster,
                 same("--out", cluster, "FILE"));
  expect_refused("topology show " + cluster + " --svg " + cluster,
                 same("--svg", cluster, "CLUSTER"));
  expect_refused("topology export " + cluster + " --to dot --out " + cluster,
                 same("--out", cluster, "CLUSTER"));
  expect_refused("sweep " + sweep + " --out " + sweep, same("--out", sweep, "SPEC"));
  expect_refused("compare " + cluster + " " + measured + " --points " + measured,
                 same("--points", measured, "MEASURED"));
  expect_refused("compare dgx-h100 " + measured + "@" + cluster + " --report " + cluster,
                 same("--report", cluster, "MEASURED"));
  expect_refused("calibrate --device " + device + " --out " + device,
                 same("--out", device, "--device"));
  expect_refused("calibrate --device h100-sxm5 --measurements " + measured + " --out " + measured,
                 same("--out", measured, "--measurements"));
  EXPECT_EQ(read_all(cluster), text);
  EXPECT_EQ(read_all(measured), "{}");
}

TEST(output_file, is_not_a_shipped_one_that_is_read) {
  const temporary_folder folder;
  fs::create_directories(folder.file("topologies/clusters"));
  const auto cluster = folder.write("topologies/clusters/mine.yaml",
                                    run_program("topology import dgx-h100 --quiet").output);
  const auto r = run_program("predict mine" + layer + "--report " + cluster,
                             "env ATTNSIM_TOPOLOGIES=" + folder.file("topologies"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.messages,
            "attnsim: --report: '" + cluster + "': expected another file than CLUSTER\n");
}

TEST(output_file, is_not_that_of_another_flag) {
  const temporary_folder folder;
  const auto same = folder.file("r"), there = folder.write("there", "old");
  fs::create_symlink("r", folder.file("link"));
  for (const auto& [report, trace] : std::vector<std::pair<std::string, std::string>>{
           {same, same}, {there, there}, {same, folder.file("link")}, {folder.file("./r"), same}}) {
    expect_refused(predict + "--report " + report + " --trace " + trace,
                   "--report: '" + report + "': expected another file than --trace");
  }
  expect_only(folder, {"link", "there"});
}

TEST(output_file, is_not_where_the_shell_sends_standard_output) {
  const temporary_folder folder;
  const auto page = folder.file("page.html");
  const auto r = run_program(predict + "--report " + page, "sh -c 'exec \"$@\" >" + page + "' sh");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.messages,
            "attnsim: --report: '" + page + "': expected another file than standard output\n");
}

}  // namespace output_files_test
}  // namespace attnsim
