// The commands of the program `attnsim`: each adds itself to the command line with its help and runs as its callback.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace attnsim::cli {

void add_predict(CLI::App&);
void add_plan(CLI::App&);
void add_search(CLI::App&);
void add_step(CLI::App&);
void add_sweep(CLI::App&);
void add_reproduce(CLI::App&);
void add_topology(CLI::App&);
void add_import(CLI::App& topology);
void add_schedules(CLI::App&);
void add_completion(CLI::App&);
void add_calibrate(CLI::App&);
void add_compare(CLI::App&);
void add_reference(CLI::App&);
std::vector<std::string> reference_names();  ///< what it prints
void add_doctor(CLI::App&);
void print_manual(const CLI::App&);  ///< attnsim.1, of all commands that were added
void add_validate(CLI::App&);        ///< where the executor is built
void add_measure(CLI::App&);         ///< likewise
/// A command that is not built: it says how to get it.
void add_left_out(CLI::App&, const char* name);

}  // namespace attnsim::cli
