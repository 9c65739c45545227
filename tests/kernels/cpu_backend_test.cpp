#include "kernels/cpu/backend.hpp"

#include <atomic>
#include <chrono>
#include <limits>
#include <span>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>

#include "kernels/with_type.hpp"
#include "tests/kernels/random_block.hpp"

namespace attnsim::kernels::cpu {
namespace cpu_backend_test {

using testing::ElementsAre;
using testing::ThrowsMessage;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Device memory of one dense tensor.
struct device_buffer {
  backend& device;
  token_shape shape;
  device_tensor tensor;

  device_buffer(backend& owner, data_type type, const token_shape& s)
      : device(owner), shape(s), tensor(dense(device.allocate(dense_bytes(type, s)), type, s)) {}
  template <typename T>
  device_buffer(backend& owner, stream_id stream, const test::tensor<T>& host)
      : device_buffer(owner, type_of<T>, host.shape) {
    const std::vector<double> wide = host.dense();
    std::vector<T> elements;
    for (const double x : wide) elements.push_back(T(static_cast<float>(x)));
    device.copy(stream, tensor.view.data, elements.data(), elements.size() * sizeof(T));
    device.synchronize(stream);
  }
  ~device_buffer() { device.free(tensor.view.data); }
  device_buffer(const device_buffer&) = delete;

  /// The fp32 elements, once the stream is done.
  std::vector<double> read(stream_id stream) const {
    std::vector<float> elements(dense_bytes(tensor.type, shape) / sizeof(float));
    device.copy(stream, elements.data(), tensor.view.data, elements.size() * sizeof(float));
    device.synchronize(stream);
    return {elements.begin(), elements.end()};
  }
};

class cpu_backend : public testing::TestWithParam<stream_kind> {
 protected:
  std::unique_ptr<backend> device = make_backend({.threads = 2, .streams = GetParam()});
  stream_id compute = device->create_stream();
  stream_id transfer = device->create_stream();
};
INSTANTIATE_TEST_SUITE_P(both, cpu_backend,
                         testing::Values(stream_kind::threaded, stream_kind::immediate));

// What an executor does: two blocks of columns on one stream, their merge on another.
TEST_P(cpu_backend, attention_in_two_blocks_agrees_with_the_oracle) {
  test::random_source random{31};
  const block_shape whole{.batch = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 16,
                          .rows = 24,
                          .cols = 24,
                          .mask = {.causal = true}};
  const auto rows = test::query_shape(whole);
  const auto statistics = test::row_shape(whole);
  const auto q = test::random_tensor<bf16>(rows, random);
  const auto k = test::random_tensor<bf16>(test::key_shape(whole), random);
  const auto v = test::random_tensor<bf16>(test::key_shape(whole), random);
  const auto d_o = test::random_tensor<bf16>(rows, random);

  const device_buffer query(*device, compute, q), key(*device, compute, k);
  const device_buffer value(*device, compute, v), output_gradient(*device, compute, d_o);
  const device_buffer output(*device, data_type::fp32, rows), part(*device, data_type::fp32, rows);
  const device_buffer lse(*device, data_type::fp32, statistics);
  const device_buffer part_lse(*device, data_type::fp32, statistics);
  const device_buffer delta(*device, data_type::fp32, statistics);
  const device_buffer rounded_output(*device, data_type::bf16, rows);
  const device_buffer query_gradient(*device, data_type::fp32, rows);
  const device_buffer query_gradient_part(*device, data_type::fp32, rows);
  const device_buffer key_gradient(*device, data_type::fp32, test::key_shape(whole));
  const device_buffer value_gradient(*device, data_type::fp32, test::key_shape(whole));

  const auto block = [&](std::int64_t first) {
    auto shape = whole;
    shape.cols = 12;
    shape.mask.key_first = first;
    return shape;
  };
  device->fill(compute, statistics, lse.tensor, -infinity);
  device->fill(compute, rows, query_gradient.tensor, 0);
  for (const std::int64_t first : {12, 0}) {
    device->forward(compute, {.shape = block(first),
                              .query = query.tensor,
                              .key = tokens_from(key.tensor, first),
                              .value = tokens_from(value.tensor, first),
                              .output = part.tensor,
                              .lse = part_lse.tensor});
    const auto computed = device->record(compute);
    device->wait(transfer, computed);
    device->merge(transfer, rows, output.tensor, lse.tensor, part.tensor, part_lse.tensor);
    const auto merged = device->record(transfer);
    device->wait(compute, merged);
    device->release(computed);
    device->release(merged);
  }
  device->cast(compute, rows, rounded_output.tensor, output.tensor);
  device->delta(compute, rows, rounded_output.tensor, output_gradient.tensor, delta.tensor);
  for (const std::int64_t first : {0, 12}) {
    device->backward(compute, {.shape = block(first),
                               .query = query.tensor,
                               .key = tokens_from(key.tensor, first),
                               .value = tokens_from(value.tensor, first),
                               .output_gradient = output_gradient.tensor,
                               .lse = lse.tensor,
                               .delta = delta.tensor,
                               .query_gradient = query_gradient_part.tensor,
                               .key_gradient = tokens_from(key_gradient.tensor, first),
                               .value_gradient = tokens_from(value_gradient.tensor, first)});
    device->accumulate(compute, rows, query_gradient.tensor, query_gradient_part.tensor);
  }

  const auto a = test::reference_of(whole);
  const auto expected = reference_forward(a, q.dense(), k.dense(), v.dense());
  const auto gradients = reference_backward(a, q.dense(), k.dense(), v.dense(), d_o.dense());
  EXPECT_LT(test::relative_error(output.read(compute), expected.output), 1e-5);
  EXPECT_LT(test::relative_error(lse.read(compute), expected.lse), 1e-5);
  EXPECT_LT(test::relative_error(query_gradient.read(compute), gradients.query), 1e-2);
  EXPECT_LT(test::relative_error(key_gradient.read(compute), gradients.key), 1e-2);
  EXPECT_LT(test::relative_error(value_gradient.read(compute), gradients.value), 1e-5);
}

TEST_P(cpu_backend, interleave_gathers_striped_tokens) {
  const token_shape shape{.tokens = 4, .head_dim = 1};
  const device_buffer source(*device, data_type::fp32, shape);
  const device_buffer destination(*device, data_type::fp32, shape);
  const float ranks[] = {0, 2, 1, 3};
  device->copy(compute, source.tensor.view.data, ranks, sizeof ranks);
  device->interleave(compute, shape, 2, destination.tensor, source.tensor);
  EXPECT_THAT(destination.read(compute), ElementsAre(0, 1, 2, 3));
}

TEST_P(cpu_backend, events_time_what_lies_between_them) {
  using namespace std::chrono_literals;
  const auto before = device->record(compute);
  device->call(compute, [] { std::this_thread::sleep_for(20ms); });
  const auto after = device->record(compute);
  EXPECT_GE(device->seconds_between(before, after), 0.02);
}

TEST_P(cpu_backend, a_failure_is_thrown_by_synchronize) {
  device->call(compute, [] { throw std::runtime_error("lost"); });
  EXPECT_NO_THROW(device->synchronize(transfer));
  EXPECT_THAT([&] { device->synchronize(compute); }, ThrowsMessage<std::runtime_error>("lost"));
}

TEST_P(cpu_backend, has_no_graphs) {
  EXPECT_THAT([&] { device->begin_capture(compute); },
              ThrowsMessage<std::runtime_error>("cpu devices have no graphs"));
}

TEST_P(cpu_backend, refuses_bad_arguments_at_once) {
  const device_tensor fp32{data_type::fp32};
  const device_tensor bf16{data_type::bf16};
  EXPECT_THAT(
      [&] { device->forward(compute, {.key = bf16}); },
      ThrowsMessage<std::invalid_argument>("attention block: rows is 0, expected at least 1"));
  EXPECT_THAT([&] { device->merge(compute, {.tokens = 1}, fp32, bf16, fp32, fp32); },
              ThrowsMessage<std::invalid_argument>("merge: lse is bf16, expected fp32"));
  EXPECT_THAT(
      [&] { device->cast(compute, {}, fp32, fp32); },
      ThrowsMessage<std::invalid_argument>("token block: tokens is 0, expected at least 1"));
}

}  // namespace cpu_backend_test
}  // namespace attnsim::kernels::cpu
