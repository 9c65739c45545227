#include "ask/step_costs.hpp"

#include <gtest/gtest.h>

#include "model/cost/matmul.hpp"

namespace attnsim::ask {
namespace {

layer_setting llama2_on(degrees cut) {
  return {.model = read_transformer("llama2-7b"), .cut = cut, .tokens = 4096};
}

double at(const part_times& parts, step_part p) {
  return parts[static_cast<std::size_t>(p)];
}

TEST(step_costs, of_one_device_are_its_operations) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  const auto s = llama2_on({});
  const step_costs costs(c, s, sharding::none, {.time = {0.5, 0.25}}, known);
  const auto parts = costs.layers(pass_kind::forward, {.others = 1}, {});
  double products = 0, elementwise = 0;
  for (const auto& op : forward_operations(s)) {
    if (op.work == layer_work::product)
      products += product_time(c.device, op.product, op.type).value();
    if (op.work == layer_work::elementwise)
      elementwise +=
          op.kernels *
          c.device
              .elementwise_time(op.kind,
                                byte_count(static_cast<std::int64_t>(op.traffic / op.kernels)))
              .value();
  }
  EXPECT_NEAR(at(parts, step_part::products), products, 1e-12);
  EXPECT_NEAR(at(parts, step_part::elementwise), elementwise, 1e-12);
  EXPECT_NEAR(at(parts, step_part::attention), 0.5, 1e-12);
  EXPECT_NEAR(sum_of(parts), products + elementwise + 0.5, 1e-12);
  EXPECT_NEAR(at(costs.layers(pass_kind::backward, {.others = 3}, {}, 2), step_part::attention),
              3 * 2 * 0.25, 1e-9);
}

TEST(step_costs, further_layers_add_what_the_fourth_does) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  const auto s = llama2_on({.tensor = 2, .data = 4});
  const step_costs costs(c, s, sharding::parameters, {.time = {1e-3, 2e-3}}, known);
  const beside fsdp{.gathers = true, .reduces = true};
  const double three = sum_of(costs.layers(pass_kind::backward, {.others = 3}, fsdp)),
               four = sum_of(costs.layers(pass_kind::backward, {.others = 4}, fsdp));
  EXPECT_NEAR(sum_of(costs.layers(pass_kind::backward, {.others = 10}, fsdp)),
              four + 6 * (four - three), 1e-12);
}

TEST(step_costs, tensor_exchange_is_exposed_unless_it_overlaps) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  auto s = llama2_on({.tensor = 8});
  s.tokens = 65536;
  const step_costs plain(c, s, sharding::none, {}, known);
  auto overlapped = s;
  overlapped.overlaps_tensor = true;
  const step_costs pieces(c, overlapped, sharding::none, {}, known);
  const auto ring = transfer_in(c, collective_kind::all_gather, {{0, 1, 2, 3, 4, 5, 6, 7}});
  const double exchange =
      at(plain.layers(pass_kind::forward, {.others = 1}, {}), step_part::tensor);
  EXPECT_NEAR(exchange, 4 * ring.time_alone(2.0 * 65536 * 4096).value(), 1e-9);
  EXPECT_LT(at(pieces.layers(pass_kind::forward, {.others = 1}, {}), step_part::tensor),
            0.6 * exchange);
}

TEST(step_costs, few_tokens_are_exchanged_whole_though_they_may_overlap) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  auto s = llama2_on({.tensor = 8});
  s.tokens = 256;
  auto overlapped = s;
  overlapped.overlaps_tensor = true;
  const step_costs plain(c, s, sharding::none, {}, known),
      pieces(c, overlapped, sharding::none, {}, known);
  EXPECT_EQ(pieces.layers(pass_kind::forward, {.others = 8}, {}),
            plain.layers(pass_kind::forward, {.others = 8}, {}));
}

TEST(step_costs, gathers_hide_behind_the_layer_before) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  const auto s = llama2_on({.data = 8});
  const step_costs costs(c, s, sharding::parameters, {.time = {10e-3, 20e-3}}, known);
  const auto one = costs.layers(pass_kind::forward, {.others = 1}, {.gathers = true});
  const auto ring = transfer_in(c, collective_kind::all_gather, {{0, 1, 2, 3, 4, 5, 6, 7}});
  const double gather = ring.time_alone(2 * 202383360.0).value();
  EXPECT_NEAR(at(one, step_part::data), gather, 1e-9);  // the first has none before it
  EXPECT_NEAR(
      at(costs.layers(pass_kind::forward, {.others = 8}, {.gathers = true}), step_part::data),
      gather, 1e-6);
}

TEST(step_costs, optimizer_moves_thirty_bytes_a_parameter_it_keeps) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  const auto s = llama2_on({.data = 8});
  const step_costs sharded(c, s, sharding::optimizer, {}, known),
      plain(c, s, sharding::none, {}, known);
  const double rate = c.device.memory_bandwidth.value() * c.device.memory_efficiency;
  EXPECT_NEAR(sum_of(plain.optimizer(1e9, 0)), 30e9 / rate, 1e-5);
  EXPECT_NEAR(sum_of(sharded.optimizer(8e9, 0)), 30e9 / rate, 1e-5);
}

TEST(step_costs, a_slow_device_slows_all) {
  auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  const auto s = llama2_on({});
  const double fast = sum_of(
      step_costs(c, s, sharding::none, {}, known).layers(pass_kind::forward, {.others = 2}, {}));
  c.device_speed.assign(c.device_speed.size(), 0.5);
  EXPECT_NEAR(sum_of(step_costs(c, s, sharding::none, {}, known)
                         .layers(pass_kind::forward, {.others = 2}, {})),
              2 * fast, 1e-12);
}

TEST(known_parts, are_made_once) {
  const auto c = read_cluster("dgx-h100", {.nodes = 1});
  known_parts known(c);
  const attention a{.heads = 8, .kv_heads = 8, .sequence = 4096};
  const strategy s;
  const auto& first = known.attention(a, s, 1, pass_kind::both, prediction_method::analytic);
  EXPECT_EQ(&known.attention(a, s, 1, pass_kind::both, prediction_method::analytic), &first);
  auto longer = a;
  longer.sequence = 8192;
  EXPECT_NE(&known.attention(longer, s, 1, pass_kind::both, prediction_method::analytic), &first);
}

}  // namespace
}  // namespace attnsim::ask
