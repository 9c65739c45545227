// The studies behind the table of study.cpp: one file each.
#pragma once

#include "reproduce/study.hpp"

namespace attnsim::reproduce {

result attention2d_a100();
result attention2d_h100();
result mesh();
/// ring-flash-attention, usp, magiattention; `notes` say why large errors are large.
result measured_times(const std::string& table, std::vector<std::string> notes);
result tensorrt_llm();
result flash_attention();
result nccl_tests();

}  // namespace attnsim::reproduce
