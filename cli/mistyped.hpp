// What is wrong with a command line that CLI11 does not take.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace attnsim::cli {

/// The first argument that nothing takes, with the command or flag that it may stand for, before what is missing for lack
/// of it: "--seqq: unknown flag of attnsim plan; did you mean --seq?". Else CLI11's own first line.
std::string mistake_in(const CLI::App&, const CLI::ParseError&);

}  // namespace attnsim::cli
