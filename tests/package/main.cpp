#include <cstdio>

#include "ask/predict.hpp"

int main() {
  const auto c = attnsim::read_cluster("nd-h100-v5", {.nodes = 1});
  const attnsim::attention a{.heads = 32, .kv_heads = 8, .sequence = 131072};
  const auto p = attnsim::predict(c, a, {.schedule = "ring"}, 8, attnsim::pass_kind::forward);
  std::printf("%s\n", attnsim::to_string(p.time).c_str());
  return p.time > attnsim::seconds() ? 0 : 1;
}
