#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {

schedule one_kernel_call(pass_kind pass) {
  schedule_builder b("one kernel call", rank_grid({1, 1}), pass);
  const auto queries = own_queries(b);
  const auto keys = b.own({tensor::k, tensor::v});
  b.add(pass == pass_kind::forward ? op_kind::attention : op_kind::attention_backward, 0,
        queries + keys, b.own(results_of(pass)));
  return b.finish();
}

}  // namespace attnsim
