#include "validate/layer/parameters.hpp"

#include <gtest/gtest.h>

#include <set>

#include "model/error.hpp"

namespace attnsim::validate {
namespace parameters_test {

layer_setting setting(const char* model, int tensor) {
  return {.model = read_transformer(model), .cut = {.tensor = tensor}, .tokens = 1024};
}

TEST(parameters, are_as_many_as_a_step_counts) {
  for (const char* model : {"llama2-7b", "llama3-8b", "llama3-70b"}) {
    for (const int tensor : {1, 2, 8}) {
      const auto s = setting(model, tensor);
      EXPECT_EQ(static_cast<double>(parameter_layout(s).elements()), dense_parameters_a_rank(s))
          << model << " " << tensor;
    }
  }
}

TEST(parameters, of_tensor_ranks_are_the_whole_layer_s) {
  transformer t{.name = "small", .layers = 1, .hidden = 6, .intermediate = 4};
  t.shape = {.heads = 4, .kv_heads = 2, .head_dim = 2};
  const layer_setting whole{.model = t}, cut{.model = t, .cut = {.tensor = 2}};
  const parameter_layout all(whole), part(cut);
  for (const auto p : {parameter::projections, parameter::output, parameter::up, parameter::down}) {
    std::set<std::pair<std::int64_t, std::int64_t>> places;
    for (int rank = 0; rank < 2; ++rank) {
      for (std::int64_t i = 0; i < part.of(p).elements(); ++i) {
        const auto at = part.in_layer(p, rank, i / part.of(p).cols, i % part.of(p).cols);
        EXPECT_LT(at.row, all.of(p).rows);
        EXPECT_LT(at.col, all.of(p).cols);
        places.emplace(at.row, at.col);
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(places.size()), all.of(p).elements()) << name_of(p);
  }
  // The second rank's first key and its first row of what the gate multiplies.
  EXPECT_EQ(part.in_layer(parameter::projections, 1, 4, 3).row, 8 + 2);
  EXPECT_EQ(part.in_layer(parameter::up, 1, 2, 3).row, 4 + 2);
}

}  // namespace parameters_test
}  // namespace attnsim::validate
