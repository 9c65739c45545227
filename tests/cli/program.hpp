// Runs the program as a user does: by a shell, with its output, messages and exit code kept apart.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace attnsim {

struct program_result {
  int exit_code = -1;
  std::string output;
  std::string messages;
};

inline std::string read_all(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// A folder of its own for one test, removed at the end.
class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = "/tmp/attnsim-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~temporary_folder() { std::system(("rm -rf " + path_).c_str()); }
  temporary_folder(const temporary_folder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

 private:
  std::string path_;
};

inline program_result run_program(const std::string& arguments) {
  const temporary_folder folder;
  const auto command = std::string(ATTNSIM_PROGRAM) + " " + arguments + " >" + folder.file("out") +
                       " 2>" + folder.file("err") + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(folder.file("out")),
          read_all(folder.file("err"))};
}

}  // namespace attnsim
