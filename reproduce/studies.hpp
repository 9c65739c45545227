// The studies behind the table of study.cpp: one file each.
#pragma once

#include "model/cluster/cluster.hpp"
#include "model/schedule/strategy.hpp"
#include "reproduce/study.hpp"

namespace attnsim::reproduce {

result attention2d_a100();
result attention2d_h100();
result mesh();

/// An assumption of studies of eager PyTorch.
inline constexpr const char* pytorch_host =
    "the host launches calls as fast as eager PyTorch was measured to under two H200 "
    "(topologies/hosts/pytorch.yaml)";

/// What a row of a published table ran.
struct published_run {
  cluster on;
  attention problem;
  strategy chosen;
};

/// Another assumption about the rows of some series, whose predictions are shown beside the counted ones.
struct other_assumption {
  std::string text;
  std::string series;  ///< how their names begin
  void (*change)(published_run&);
};
/// ring-flash-attention, usp, magiattention, all run by eager PyTorch; `notes` say why large errors are large.
result measured_times(const std::string& table, std::vector<std::string> assumptions,
                      const std::vector<other_assumption>& others, std::vector<std::string> notes);

result tensorrt_llm();
result flash_attention();
result nccl_tests();
result products();
result nemo_steps();
result torchtitan_layers();
result torchtitan_steps();
result megatron_steps();
result headline_steps();
result nccl_mid_sizes();
result slices();

}  // namespace attnsim::reproduce
