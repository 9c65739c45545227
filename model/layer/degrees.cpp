#include "model/layer/degrees.hpp"

#include <algorithm>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<rank_group, 5> group_names{{{rank_group::tensor, "tensor"},
                                                 {rank_group::context, "context"},
                                                 {rank_group::replicas, "replicas"},
                                                 {rank_group::expert, "expert"},
                                                 {rank_group::expert_replicas, "expert replicas"}}};

/// Members of a group are `stride` apart.
int stride_of(const degrees& d, rank_group group) {
  switch (group) {
    case rank_group::tensor:
    case rank_group::expert:
      return 1;
    case rank_group::context:
    case rank_group::replicas:
      return d.tensor;
    case rank_group::expert_replicas:
      return d.expert;
  }
  return 1;
}

int stages_on_one_node(const degrees& d, int devices_per_node) {
  return std::clamp((devices_per_node + d.stage_ranks() - 1) / d.stage_ranks(), 1, d.pipeline);
}

}  // namespace

std::string_view name_of(rank_group group) {
  return find_name(group_names, group);
}

int size_of(const degrees& d, rank_group group) {
  switch (group) {
    case rank_group::tensor:
      return d.tensor;
    case rank_group::context:
      return d.context;
    case rank_group::replicas:
      return d.replicas();
    case rank_group::expert:
      return d.expert;
    case rank_group::expert_replicas:
      return d.expert_replicas();
  }
  return 1;
}

device_groups groups_of(const degrees& d, rank_group group, int devices_per_node) {
  const int size = size_of(d, group), stride = stride_of(d, group);
  const int ranks = d.stage_ranks() * stages_on_one_node(d, devices_per_node);
  device_groups groups;
  for (int first = 0; first < ranks; ++first) {
    if (first / stride % size != 0) continue;
    std::vector<int> members;
    for (int i = 0; i < size; ++i) members.push_back(first + i * stride);
    groups.push_back(std::move(members));
  }
  return groups;
}

device_groups stage_neighbours(const degrees& d, int devices_per_node) {
  const int senders = std::min(d.stage_ranks() * stages_on_one_node(d, devices_per_node),
                               d.stage_ranks() * (d.pipeline - 1));
  device_groups pairs;
  for (int from = 0; from < senders; ++from) pairs.push_back({from, from + d.stage_ranks()});
  return pairs;
}

}  // namespace attnsim
