// The lengths of a global batch's documents: listed in a file or drawn from a distribution.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnsim::ask {

/// `text` is a file with a whole number a line, or lognormal:mean=4096,sigma=1.1,max=64K,count=512 with an optional seed=N: so many
/// lengths, whose mean is `mean` before those above `max` are cut to it. Sizes may be written as 64K. Not empty, each at least 1.
/// `field`: what an error is about. Throws input_error.
std::vector<std::int64_t> read_lengths(const std::string& text,
                                       const std::string& field = "lengths");

}  // namespace attnsim::ask
