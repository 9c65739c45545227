// Runs the program as a user does: by a shell, with its output, messages and exit code kept apart.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/temporary_folder.hpp"

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

/// `launcher` is what comes before the program: "mpirun -np 2".
inline program_result run_program(const std::string& arguments, const std::string& launcher = "") {
  const temporary_folder folder;
  const auto command = launcher + " " + ATTNSIM_PROGRAM + " " + arguments + " >" +
                       folder.file("out") + " 2>" + folder.file("err") + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(folder.file("out")),
          read_all(folder.file("err"))};
}

}  // namespace attnsim
