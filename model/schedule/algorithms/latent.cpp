// Absorbed latent attention with any schedule: values are in the keys, so that nothing holds or sends them.
#include <algorithm>

#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

void erase_values(operands& list) {
  std::erase_if(list, [](const operand& o) { return o.what == tensor::v; });
}

/// Numbers of the buffers that are left, by their old ones.
std::vector<int> erase_value_buffers(std::vector<buffer>& buffers) {
  std::vector<int> renumbered;
  int left = 0;
  for (const auto& b : buffers) renumbered.push_back(b.what == tensor::v ? -1 : left++);
  std::erase_if(buffers, [](const buffer& b) { return b.what == tensor::v; });
  return renumbered;
}

}  // namespace

schedule with_values_in_keys(schedule s) {
  for (auto& op : s.program) {
    erase_values(op.reads);
    erase_values(op.writes);
  }
  std::erase_if(s.program, [](const operation& op) { return op.reads.empty(); });
  const auto renumbered = erase_value_buffers(s.buffers);
  for (auto& op : s.program) {
    for (auto* list : {&op.reads, &op.writes}) {
      for (auto& o : *list) o.buffer = renumbered[static_cast<std::size_t>(o.buffer)];
    }
  }
  derive_needs(s);
  return s;
}

}  // namespace attnsim
