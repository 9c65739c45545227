// The studies behind the table of study.cpp: one file each.
#pragma once

#include "reproduce/study.hpp"

namespace attnsim::reproduce {

result attention2d_a100();
result attention2d_h100();
result mesh();

}  // namespace attnsim::reproduce
