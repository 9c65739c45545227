// Standard output is a result like a file: what could not be written is an error.
#pragma once

#include <string>

namespace attnsim::cli {

/// Takes the places of standard streams that are closed, which the next opened file would get. Writing to standard output
/// then fails; messages go nowhere.
void take_closed_streams();

/// Ends standard output. Why it was not written, empty where it was; `failure` is what the system said before, 0 for nothing.
std::string close_standard_output(int failure);

}  // namespace attnsim::cli
