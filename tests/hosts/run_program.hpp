// Runs a program to its end and captures what it prints.
#pragma once

#include <string>
#include <vector>

namespace attnsim::hosts {

using command_line = std::vector<std::string>;

struct program_result {
  int status = 0;  ///< exit code, or 128 + the signal that ended it, as a shell has it
  std::string output;
  std::string errors;
};

/// Searches PATH when command[0] has no slash; standard input is empty. Status 127 where the
/// program can't be started.
program_result run_program(const command_line& command);

/// As run_program, but a status other than 0 is a std::runtime_error with the command and its last
/// line of errors.
std::string output_of(const command_line& command);

/// Whether PATH holds an executable of that name.
bool is_installed(const std::string& program);

}  // namespace attnsim::hosts
