#include "validate/layer/layer_executor.hpp"

#include <gmock/gmock.h>

#include <mutex>

#include "kernels/cpu/backend.hpp"
#include "model/error.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "tests/validate/small_layers.hpp"
#include "validate/forwarding_backend.hpp"
#include "validate/layer/layer_oracle.hpp"
#include "validate/transports/inprocess.hpp"

namespace attnsim::validate {
namespace layer_executor_test {

layer_numerics run(const layer_case& c) {
  const auto on = small_cluster();
  const auto plan = plan_of(c, on);
  const layer_oracle expected(*plan);
  layer_numerics numbers;
  run_in_process(c.cut.ranks(), std::chrono::seconds(60), [&](transport& t) {
    const auto cpu = kernels::cpu::make_backend();
    const auto own = run_layer(*plan, expected, t, *cpu);
    if (t.rank() == 0) numbers = own;
  });
  return numbers;
}

TEST(layer_executor, outputs_and_gradients_are_the_reference_s) {
  for (const auto& c : layer_cases(1, 2)) {
    const auto numbers = run(c);
    EXPECT_TRUE(numbers.passed) << label(c) << "\n" << listed(numbers);
    EXPECT_EQ(numbers.errors.size(), c.model.experts > 0 ? 10u : 9u);  // and the router
  }
}

TEST(layer_executor, outputs_and_gradients_on_four_ranks) {
  for (const auto& c : layer_cases(4, 4)) {
    const auto numbers = run(c);
    EXPECT_TRUE(numbers.passed) << label(c) << "\n" << listed(numbers);
  }
}

/// What the back end is asked for beside attention, as the list would say it.
class recording_backend final : public forwarding_backend {
 public:
  using forwarding_backend::forwarding_backend;
  std::vector<std::string> calls;

  void product(stream_id s, const kernels::product_arguments& a) override {
    calls.push_back(fmt::format("product {} x {} x {}", a.rows, a.cols, a.inner));
    inner().product(s, a);
  }
  void norm(stream_id s, const kernels::norm_arguments& a) override {
    calls.push_back(fmt::format("norm {}", a.rows * a.width));
    inner().norm(s, a);
  }
  void norm_gradient(stream_id s, const kernels::norm_gradient_arguments& a) override {
    calls.push_back(fmt::format("norm {}", a.rows * a.width));
    inner().norm_gradient(s, a);
  }
  void gate(stream_id s, const kernels::gate_arguments& a) override {
    calls.push_back(fmt::format("activation {}", a.rows * a.width));
    inner().gate(s, a);
  }
  void gate_gradient(stream_id s, const kernels::gate_gradient_arguments& a) override {
    calls.push_back(fmt::format("activation {}", a.rows * a.width));
    inner().gate_gradient(s, a);
  }
  /// Gradients become fp32 a parameter at a time.
  void cast(stream_id s, const kernels::token_shape& shape, const kernels::device_tensor& to,
            const kernels::device_tensor& from) override {
    const std::string_view widening = "gradients to fp32 ";
    auto elements = shape.batch * shape.tokens * shape.heads * shape.head_dim;
    if (to.type == from.type) {
      calls.push_back(fmt::format("values {}", elements));
    } else if (to.type == data_type::fp32) {
      if (calls.back().starts_with(widening)) {
        elements += std::stoll(calls.back().substr(widening.size()));
        calls.pop_back();
      }
      calls.push_back(fmt::format("{}{}", widening, elements));
    }
    inner().cast(s, shape, to, from);
  }
  void rotate(stream_id s, const kernels::token_shape& shape, const kernels::device_tensor& to,
              const kernels::device_tensor& from, const float* angles, bool back) override {
    const auto elements = shape.batch * shape.tokens * shape.heads * shape.head_dim;
    const bool keys = !calls.empty() && calls.back().starts_with("rotation of queries");
    if (keys) {
      const auto queries =
          std::stoll(calls.back().substr(std::string("rotation of queries").size()));
      calls.back() = fmt::format("rotation {}", queries + elements);
    } else {
      calls.push_back(fmt::format("rotation of queries {}", elements));
    }
    inner().rotate(s, shape, to, from, angles, back);
  }
};

/// A channel that says what it moves.
class recording_channel final : public channel {
 public:
  recording_channel(std::unique_ptr<channel> inner, std::size_t members, recording_backend& told)
      : inner_(std::move(inner)), members_(members), told_(told) {}

  void send_receive(const std::string& what, int to, int from,
                    std::span<const payload> data) override {
    inner_->send_receive(what, to, from, data);
  }
  void all_gather(const std::string& what, std::span<const payload> data) override {
    tell("all-gather", data);
    inner_->all_gather(what, data);
  }
  void reduce_scatter(const std::string& what, std::span<const payload> data) override {
    tell("reduce-scatter", data);
    inner_->reduce_scatter(what, data);
  }
  void all_to_all(const std::string& what, std::span<const payload> data) override {
    inner_->all_to_all(what, data);
  }
  void all_reduce(const std::string& what, std::span<const payload> data) override {
    told_.calls.push_back(fmt::format("all-reduce {}", data[0].slot_bytes));
    inner_->all_reduce(what, data);
  }

 private:
  void tell(const char* kind, std::span<const payload> data) {
    told_.calls.push_back(fmt::format("{} {}", kind, data[0].slot_bytes * members_));
  }

  std::unique_ptr<channel> inner_;
  std::size_t members_;
  recording_backend& told_;
};

class recording_transport final : public transport {
 public:
  recording_transport(transport& inner, recording_backend& told) : inner_(inner), told_(told) {}
  std::string_view name() const override { return inner_.name(); }
  int rank() const override { return inner_.rank(); }
  int ranks() const override { return inner_.ranks(); }
  std::unique_ptr<channel> open(kernels::backend& b, kernels::stream_id s,
                                const std::vector<int>& group, int channels) override {
    return std::make_unique<recording_channel>(inner_.open(b, s, group, channels), group.size(),
                                               told_);
  }
  std::vector<blob> share(const blob& own) override { return inner_.share(own); }
  double clock_offset() override { return inner_.clock_offset(); }

 private:
  transport& inner_;
  recording_backend& told_;
};

/// The list as the back end and the transport should be asked for it; attention has its own tests.
std::vector<std::string> expected_calls(const std::vector<layer_operation>& list) {
  std::vector<std::string> calls;
  for (const auto& op : list) {
    const double bytes_an_element = op.name == "norm"                                           ? 8
                                    : op.name == "rotation" || op.name == "values"              ? 4
                                    : op.name == "activation" || op.name == "gradients to fp32" ? 6
                                                                                                : 0;
    switch (op.work) {
      case layer_work::product:
        calls.push_back(fmt::format("product {} x {} x {}", op.product.rows, op.product.cols,
                                    op.product.inner));
        break;
      case layer_work::elementwise:
        calls.push_back(fmt::format("{} {}", op.name, op.traffic / bytes_an_element));
        break;
      case layer_work::collective:
        calls.push_back(fmt::format("{} {}",
                                    op.moves == collective_kind::all_gather       ? "all-gather"
                                    : op.moves == collective_kind::reduce_scatter ? "reduce-scatter"
                                                                                  : "all-reduce",
                                    op.bytes));
        break;
      case layer_work::attention:
        break;
    }
  }
  return calls;
}

/// Of bf16, as the lists count bytes. A gate's gradient has five operands where the gate has three.
TEST(layer_executor, runs_the_very_list_that_is_predicted) {
  for (const degrees cut : {degrees{.tensor = 2}, degrees{.data = 2}}) {
    const layer_case c{.cut = cut, .type = data_type::bf16, .shards = cut.data > 1};
    const auto on = small_cluster();
    const auto plan = plan_of(c, on);
    const layer_oracle inputs(*plan);
    auto expected = expected_calls(plan->forward);
    auto backward = plan->backward;
    for (auto& op : backward) {
      if (op.name == "activation") op.traffic *= 3.0 / 5;
    }
    for (const auto& call : expected_calls(backward)) expected.push_back(call);
    run_in_process(2, std::chrono::seconds(60), [&](transport& t) {
      const auto cpu = kernels::cpu::make_backend();
      recording_backend recorded(*cpu);
      recording_transport through(t, recorded);
      run_layer(*plan, inputs, through, recorded);
      EXPECT_EQ(recorded.calls, expected) << label(c);
    });
  }
}

TEST(layer_executor, times_every_operation) {
  const layer_case c{.cut = {.tensor = 2}};
  const auto on = small_cluster();
  const auto plan = plan_of(c, on);
  run_in_process(2, std::chrono::seconds(60), [&](transport& t) {
    const auto cpu = kernels::cpu::make_backend();
    layer_executor runs(*plan, t, *cpu);
    runs.load_random();
    const auto forward = runs.forward(), backward = runs.backward();
    EXPECT_EQ(forward.spans.size(), plan->forward.size());
    EXPECT_EQ(backward.spans.size(), plan->backward.size());
    for (const auto* pass : {&forward, &backward}) {
      seconds sum;
      for (const auto span : pass->spans) sum += span;
      EXPECT_GT(sum, seconds());
      EXPECT_LE(sum.value(), pass->end.value() + 1e-9);  // a rank may start late
    }
  });
}

std::string refusal(const layer_case& c) {
  try {
    const auto on = small_cluster();
    plan_of(c, on);
  } catch (const infeasible& e) {
    return e.what();
  }
  return "";
}

TEST(layer_executor, refuses_what_it_cannot_run) {
  layer_case shared{.model = small_expert_model()};
  shared.model.shared_intermediate = 8;
  EXPECT_EQ(refusal(shared),
            "model: 'small': a layer of it cannot be run; feasible: layers with a gated MLP or "
            "experts, none of them shared, and heads of their own that see all tokens, such as "
            "llama3-8b or mixtral-8x7b");
  const layer_case sharded{
      .cut = {.data = 2}, .shards = true, .adds = false, .model = small_expert_model()};
  EXPECT_EQ(refusal(sharded),
            "shard: 'parameters': a layer with experts cannot be run with it; feasible: none");
  layer_case odd{.cut = {.tensor = 2}};
  odd.model.intermediate = 21;
  EXPECT_EQ(refusal(odd), "tp: '2': feasible: divisors of the heads, 4 and 2, and of the MLP's 21");
}

/// 16 tokens of which each goes to one of 6 experts.
TEST(layer_executor, refuses_experts_that_get_unequal_shares) {
  layer_case c{.model = small_expert_model()};
  c.model.experts = 6;
  c.model.active_experts = 1;
  const auto on = small_cluster();
  const auto plan = plan_of(c, on);
  run_in_process(1, std::chrono::seconds(60), [&](transport& t) {
    const auto cpu = kernels::cpu::make_backend();
    try {
      const layer_executor runs(*plan, t, *cpu);
      FAIL();
    } catch (const infeasible& e) {
      EXPECT_STREQ(e.what(),
                   "seq: '16': a rank's tokens are not dealt out evenly to 6 experts, 1 a token; "
                   "feasible: more tokens, contiguous ones");
    }
  });
}

TEST(layer_executor, is_not_checked_where_that_takes_too_long) {
  const auto on = small_cluster();
  const auto plan = plan_of({}, on);
  try {
    const layer_oracle expected(*plan, 1e4);
    FAIL();
  } catch (const infeasible& e) {
    EXPECT_STREQ(e.what(),
                 "seq: '16': the reference is too slow for a layer of this size; feasible: times "
                 "alone, fewer tokens, a smaller model");
  }
}

}  // namespace layer_executor_test
}  // namespace attnsim::validate
