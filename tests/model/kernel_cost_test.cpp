#include "model/cost/kernel.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include "model/config.hpp"

namespace attnsim {
namespace kernel_cost_test {

device_profile shipped(const std::string& name) {
  return read_device(config_node::load("topologies/devices/" + name + ".yaml"));
}

std::vector<device_profile> all_shipped() {
  std::vector<device_profile> devices;
  for (const auto& file : std::filesystem::directory_iterator("topologies/devices")) {
    devices.push_back(read_device(config_node::load(file.path().string())));
  }
  return devices;
}

kernel_call block(std::int64_t rows, std::int64_t cols, std::int64_t heads = 32) {
  return {.heads = heads, .kv_heads = heads, .rows = rows, .cols = cols, .pairs = rows * cols};
}

/// Row i sees columns up to i + offset.
kernel_call causal_block(std::int64_t rows, std::int64_t cols, std::int64_t offset,
                         std::int64_t heads = 32) {
  auto call = block(rows, cols, heads);
  call.pairs = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    call.pairs += std::clamp<std::int64_t>(i + offset + 1, 0, cols);
  }
  return call;
}

kernel_call backward(kernel_call call) {
  call.pass = pass_kind::backward;
  return call;
}

double busy_seconds(const device_profile& device, const kernel_profile* kernel,
                    const kernel_call& call) {
  return (kernel_time(device, kernel, call) - device.kernel_launch).value();
}

double rate(const device_profile& device, const kernel_profile* kernel, const kernel_call& call) {
  return operations(call).value() / busy_seconds(device, kernel, call);
}

/// Of the last size up to so many rows.
std::int64_t heads_at(const kernel_table& table, double rows) {
  std::size_t size = 0;
  while (size + 1 < table.rows.size() && table.rows[size + 1] <= rows) ++size;
  return static_cast<std::int64_t>(table.heads_of(size));
}

kernel_call measured_call(const kernel_table& table, double rows, double cols) {
  kernel_call call{.pass = table.pass,
                   .heads = heads_at(table, rows),
                   .kv_heads = heads_at(table, rows),
                   .head_dim = table.head_dim,
                   .rows = static_cast<std::int64_t>(rows),
                   .cols = static_cast<std::int64_t>(cols)};
  call.pairs = call.rows * call.cols / (table.mask == mask_kind::causal ? 2 : 1);
  return call;
}

/// Without multiprocessors to fill or a launch to pay: rates by hand.
device_profile plain_device() {
  device_profile device;
  device.peak_half = flop_rate(1000e12);
  device.peak_fp32 = flop_rate(100e12);
  device.memory_bandwidth = bandwidth(1e12);
  device.multiprocessors = 100;
  return device;
}

kernel_profile kernel_of(kernel_table table) {
  kernel_profile kernel;
  kernel.tables.push_back(std::move(table));
  return kernel;
}

flop_rate tflops(double value) {
  return flop_rate(value * 1e12);
}

// Q K and P V; backward Q K, dS K and dS Q over keys, dO V and P dO over values.
TEST(kernel_cost, counts_operations_of_keys_and_values_apart) {
  auto call = block(100, 200, 3);
  call.head_dim = 192;
  call.v_head_dim = 128;
  EXPECT_EQ(operations(call).value(), (2.0 * 192 + 2 * 128) * 3 * 100 * 200);
  EXPECT_EQ(mean_head_dim(call), 160);
  EXPECT_EQ(operations(backward(call)).value(), (6.0 * 192 + 4 * 128) * 3 * 100 * 200);
  EXPECT_DOUBLE_EQ(mean_head_dim(backward(call)), 166.4);
}

// Forward keys of 192 and values of 128 take as long as heads of 160; 2 units on the roofline's memory are their own bytes.
TEST(kernel_cost, of_keys_and_values_apart_is_that_of_heads_between) {
  const auto device = shipped("h100-sxm5");
  auto apart = block(4096, 4096), between = apart;
  apart.head_dim = 192;
  apart.v_head_dim = 128;
  between.head_dim = 160;
  for (const auto& kernel : device.kernels) {
    EXPECT_EQ(kernel_time(device, &kernel, apart), kernel_time(device, &kernel, between))
        << kernel.name;
  }
  between.v_head_dim = 160;
  EXPECT_EQ(kernel_time(device, nullptr, apart), kernel_time(device, nullptr, between));
}

TEST(kernel_cost, counts_four_operations_forward_and_ten_backward) {
  auto call = block(100, 200, 3);
  call.batch = 2;
  EXPECT_EQ(operations(call).value(), 4.0 * 2 * 3 * 128 * 100 * 200);
  EXPECT_EQ(operations(backward(call)).value(), 10.0 * 2 * 3 * 128 * 100 * 200);
}

TEST(kernel_cost, nothing_visible_is_not_launched) {
  auto call = block(100, 200);
  call.pairs = 0;
  EXPECT_EQ(kernel_time(shipped("h100-sxm5"), nullptr, call), seconds(0));
}

TEST(kernel_cost, roofline_of_the_ideal_device_is_its_peak) {
  const auto ideal = shipped("ideal");
  const auto call = block(8192, 8192);
  EXPECT_EQ(kernel_time(ideal, nullptr, call), operations(call) / ideal.peak_half);
}

TEST(kernel_cost, roofline_is_bound_by_memory_for_one_row) {
  const auto device = plain_device();
  // Q and O 2 x 1, K and V 2 x 4096 rows of 128 bf16 elements, one fp32 log-sum-exp, at 1 TB/s
  EXPECT_DOUBLE_EQ(kernel_time(device, nullptr, block(1, 4096, 1)).value(),
                   ((2 * 1 + 2 * 4096) * 128 * 2 + 4) / 1e12);
}

TEST(kernel_cost, fp32_is_not_read_from_half_precision_tables) {
  const auto h100 = shipped("h100-sxm5");
  auto call = block(8192, 8192);
  call.dtype = data_type::fp32;
  EXPECT_EQ(kernel_time(h100, h100.kernel(""), call), kernel_time(h100, nullptr, call));
}

TEST(kernel_cost, reproduces_every_published_point) {
  for (const auto& device : all_shipped()) {
    for (const auto& kernel : device.kernels) {
      for (const auto& table : kernel.tables) {
        ASSERT_TRUE(table.square);
        for (std::size_t i = 0; i < table.rows.size(); ++i) {
          const auto call = measured_call(table, table.rows[i], table.cols[i]);
          EXPECT_NEAR(rate(device, &kernel, call) / table.rates[i].value(), 1, 1e-9)
              << device.name << ' ' << kernel.name << ' ' << name_of(table.pass) << ' '
              << name_of(table.mask) << ' ' << table.head_dim << ' ' << table.rows[i];
        }
      }
    }
  }
}

TEST(kernel_cost, reproduces_every_published_point_of_fp8) {
  int points = 0;
  for (const auto& device : all_shipped()) {
    for (const auto& kernel : device.kernels) {
      for (const auto& table : kernel.fp8.tables) {
        for (std::size_t i = 0; i < table.rows.size(); ++i, ++points) {
          auto call = measured_call(table, table.rows[i], table.cols[i]);
          call.dtype = data_type::fp8;
          EXPECT_NEAR(rate(device, &kernel, call) / table.rates[i].value(), 1, 1e-9)
              << device.name << ' ' << kernel.name << ' ' << name_of(table.mask) << ' '
              << table.head_dim << ' ' << table.rows[i];
        }
      }
    }
  }
  EXPECT_GT(points, 100);
}

// 16 requests of one new token whose caches add up to 16 x 4096 keys take as long as those of 4096 each; of half the sum they read
// half: combining, which is the same, aside.
TEST(kernel_cost, requests_of_several_lengths_read_the_sum_of_their_keys) {
  const auto h200 = shipped("h200-sxm5");
  const auto* kernel = h200.kernel("attnsim-cuda");
  ASSERT_TRUE(kernel && kernel->split.present());
  auto call = block(1, 4096);
  call.batch = 16;
  const auto alike = kernel_time(h200, kernel, call);
  call.pairs_of_batch = 16 * 4096;
  EXPECT_EQ(kernel_time(h200, kernel, call), alike);
  EXPECT_EQ(operations(call).value(), 4.0 * 128 * static_cast<double>(call.heads) * 16 * 4096);
  call.pairs_of_batch /= 2;
  EXPECT_LT(kernel_time(h200, kernel, call), alike);
  EXPECT_GT(kernel_time(h200, kernel, call), alike / 2);
}

// As much faster than in 16 bits as the highest rates of forward passes are apart.
TEST(kernel_cost, backward_in_fp8_gains_as_forward_does) {
  const auto h100 = shipped("h100-sxm5");
  const auto* fa3 = h100.kernel("fa3");
  auto half = block(8192, 8192), fp8 = half;
  half.pass = fp8.pass = pass_kind::backward;
  fp8.dtype = data_type::fp8;
  const auto forward = [&](data_type type) {
    return highest_rate(h100, fa3, type, pass_kind::forward);
  };
  const double gain = forward(data_type::fp8) / forward(data_type::bf16);
  EXPECT_GT(gain, 1.3);
  EXPECT_LT(gain, 2);
  const auto busy = [&](const kernel_call& call) {
    return kernel_time(h100, fa3, call) - h100.kernel_launch;
  };
  EXPECT_NEAR(busy(half) / busy(fp8), gain, 1e-9);
  EXPECT_NEAR(highest_rate(h100, fa3, data_type::fp8, pass_kind::backward) /
                  highest_rate(h100, fa3, data_type::bf16, pass_kind::backward),
              gain, 1e-9);
}

TEST(kernel_cost, without_rates_of_fp8_a_roofline_of_its_peak) {
  const auto h100 = shipped("h100-sxm5");
  auto call = block(8192, 8192);
  call.dtype = data_type::fp8;
  const auto expected = operations(call) / (h100.roofline_efficiency * h100.peak_fp8);
  EXPECT_DOUBLE_EQ((kernel_time(h100, h100.kernel("fa2"), call) - h100.kernel_launch).value(),
                   expected.value());
  // one row: Q, K and V of one byte, O of two, one log-sum-exp
  auto row = block(1, 4096, 1);
  row.dtype = data_type::fp8;
  auto plain = plain_device();
  plain.peak_fp8 = plain.peak_half;
  EXPECT_DOUBLE_EQ(kernel_time(plain, nullptr, row).value(),
                   ((1 + 2 * 4096) * 128 + 128 * 2 + 4) / 1e12);
}

TEST(kernel_cost, reproduces_the_figure_at_its_own_batch_and_heads) {
  const auto h100 = shipped("h100-sxm5");
  const auto* fa3 = h100.kernel("fa3");
  auto call = block(16384, 16384, 16);
  EXPECT_NEAR(rate(h100, fa3, call), 648e12, 1e6);
  call = block(512, 512, 16);
  call.batch = 32;
  EXPECT_NEAR(rate(h100, fa3, call), 467e12, 1e6);
}

/// Every second size; the last if there is an even number of them is predicted by the flat
/// extrapolation.
kernel_table thinned(const kernel_table& table) {
  auto half = table;
  half.rows.clear();
  half.heads.clear();
  half.rates.clear();
  for (std::size_t i = 0; i < table.rows.size(); i += 2) {
    half.rows.push_back(table.rows[i]);
    half.heads.push_back(static_cast<std::int64_t>(table.heads_of(i)));
    half.rates.push_back(table.rates[i]);
  }
  half.cols = half.rows;
  return half;
}

TEST(kernel_cost, predicts_the_half_of_each_table_it_has_not_seen) {
  for (const auto& name : {"a100-sxm4-80gb", "h100-sxm5", "b200"}) {
    const auto device = shipped(name);
    for (const auto& kernel : device.kernels) {
      if (kernel.tables.empty()) continue;
      double sum = 0, worst = 0;
      int points = 0;
      for (const auto& table : kernel.tables) {
        const auto half = kernel_of(thinned(table));
        for (std::size_t i = 1; i < table.rows.size(); i += 2) {
          const auto call = measured_call(table, table.rows[i], table.rows[i]);
          const double error = rate(device, &half, call) / table.rates[i].value() - 1;
          sum += std::abs(error);
          worst = std::abs(error) > std::abs(worst) ? error : worst;
          ++points;
        }
      }
      fmt::print("held out, {} {}: {} points, mean error {:.1f} %, largest {:+.1f} %\n", name,
                 kernel.name, points, 100 * sum / points, 100 * worst);
      EXPECT_LT(sum / points, 0.06);
      EXPECT_LT(std::abs(worst), 0.25);
    }
  }
}

struct observation {
  const char* device;
  const char* kernel;
  kernel_call call;
  double microseconds;
};

TEST(kernel_cost, agrees_with_measurements_that_made_no_table) {
  const auto half = [](kernel_call call) {
    call.kv_heads = 8;
    call.pairs /= 2;
    return call;
  };
  const auto llama = half(block(8192, 8192));
  const observation observations[] = {
      // two H100, PyTorch 2.11, cuDNN 9.19, bf16, not causal
      {"h100-sxm5", "cudnn-9", block(8192, 8192), 1690},
      {"h100-sxm5", "cudnn-9", block(4096, 4096), 470},
      {"h100-sxm5", "fa2", block(8192, 8192), 3170},
      {"h100-sxm5", "fa2", block(4096, 4096), 834},
      // zhuzilin/ring-flash-attention, one GPU, causal: 1 / 591.5 and 1 / 154.7; 1 / 373.4 and 1
      // / 94.7 iterations a second
      {"h800-sxm5", "fa2", llama, 1690.6},
      {"h800-sxm5", "fa2", backward(llama), 6464.1 - 1690.6},
      {"a100-sxm4-80gb", "fa2", llama, 2678.1},
      {"a100-sxm4-80gb", "fa2", backward(llama), 10559.7 - 2678.1},
  };
  for (const auto& [name, kernel, call, measured] : observations) {
    const auto device = shipped(name);
    const double error =
        kernel_time(device, device.kernel(kernel), call).value() / (measured * 1e-6) - 1;
    fmt::print("{} {} {} {}: {:+.1f} %\n", name, kernel, name_of(call.pass), call.rows,
               100 * error);
    EXPECT_LT(std::abs(error), 0.12) << name << ' ' << kernel;
  }
}

// A pair's time is in proportion to head dimension / rate. At 8192: 64 / 496 and 128 / 646, 96 in the middle. In the
// longest loops 64 / 497 and 128 / 648, and 32 half their difference below the first.
TEST(kernel_cost, time_is_linear_in_the_head_dimension) {
  const auto h100 = shipped("h100-sxm5");
  const auto* fa3 = h100.kernel("fa3");
  auto call = block(8192, 8192);
  call.head_dim = 96;
  EXPECT_NEAR(rate(h100, fa3, call), 96e12 / ((64 / 496.0 + 128 / 646.0) / 2), 1e6);
  call.head_dim = 32;
  const double less = 1 - 0.5 * ((128 / 648.0) / (64 / 497.0) - 1);
  EXPECT_NEAR(rate(h100, fa3, call), 32e12 / (less * 64 / 496.0), 1e6);
  call.head_dim = 512;
  EXPECT_NEAR(rate(h100, fa3, call), 746e12, 1e6);
}

// Squares of s take (640 + s) s a head, full multiprocessors: 640 of a column's time are fixed, 0.65 x 640 = 416 of it a
// row's. 12,800 columns of 1280 rows: 12800 (1920 - 416) + 1280 x 416. The other way round: 1280 (13440 - 416) + 12800 x 416.
TEST(kernel_cost, backward_rows_take_time_of_their_own) {
  const auto square = [](double s) { return tflops(500 * s / (640 + s)); };
  const auto kernel = kernel_of({.pass = pass_kind::backward,
                                 .heads = {100},
                                 .rows = {1280, 12800},
                                 .cols = {1280, 12800},
                                 .square = true,
                                 .rates = {square(1280), square(12800)}});
  const double pairs = 1280.0 * 12800;
  const double wide = 12800 * (1920.0 - 416) + 1280 * 416,
               high = 1280 * (13440.0 - 416) + 12800 * 416;
  EXPECT_NEAR(rate(plain_device(), &kernel, backward(block(1280, 12800, 100))),
              500e12 * pairs / wide, 1e6);
  EXPECT_NEAR(rate(plain_device(), &kernel, backward(block(12800, 1280, 100))),
              500e12 * pairs / high, 1e6);
}

// The same from squares whose fixed part is ten times as long, 4160 of it a row's by its share; its bytes take 14 x 128 / 1 TB/s =
// 1.792 ns, as long as 500e12 / 1280 x 1.792e-9 = 700 pairs.
TEST(kernel_cost, backward_rows_take_no_longer_than_their_bytes) {
  const auto square = [](double s) { return tflops(500 * s / (6400 + s)); };
  const auto kernel = kernel_of({.pass = pass_kind::backward,
                                 .heads = {100},
                                 .rows = {1280, 12800},
                                 .cols = {1280, 12800},
                                 .square = true,
                                 .rates = {square(1280), square(12800)}});
  const double high = 1280 * (19200.0 - 700) + 12800 * 700;
  EXPECT_NEAR(rate(plain_device(), &kernel, backward(block(12800, 1280, 100))),
              500e12 * 1280.0 * 12800 / high, 1e6);
}

// Triangles of 4096 at 320, squares at 400: a quarter more time a pair, of four times the side a sixteenth.
TEST(kernel_cost, long_triangles_approach_squares) {
  kernel_table square{.heads = {1000}, .rows = {1024, 4096}, .cols = {1024, 4096}, .square = true};
  square.rates = {tflops(400), tflops(400)};
  auto triangle = square;
  triangle.mask = mask_kind::causal;
  triangle.rates = {tflops(250), tflops(320)};
  auto kernel = kernel_of(square);
  kernel.tables.push_back(triangle);
  kernel.scheduling = block_scheduling::persistent;
  const auto device = plain_device();
  const auto of_side = [&](double side) {
    auto call = measured_call(triangle, side, side);
    return rate(device, &kernel, call);
  };
  EXPECT_NEAR(of_side(4096), 320e12, 1e6);
  EXPECT_NEAR(of_side(16384), 400e12 / (1 + 0.25 / 4), 1e6);
  EXPECT_NEAR(of_side(1 << 20), 400e12 / (1 + 0.25 / 256), 1e6);
  kernel.tables.erase(kernel.tables.begin());
  EXPECT_NEAR(of_side(16384), 320e12, 1e6);
}

// The largest triangle is not the fastest one: what it gains is counted from the fastest.
TEST(kernel_cost, long_triangles_are_never_faster_than_squares) {
  kernel_table square{
      .heads = {1000}, .rows = {1024, 2048, 4096}, .cols = {1024, 2048, 4096}, .square = true};
  square.rates = {tflops(400), tflops(400), tflops(400)};
  auto triangle = square;
  triangle.mask = mask_kind::causal;
  triangle.rates = {tflops(250), tflops(390), tflops(320)};
  auto kernel = kernel_of(square);
  kernel.tables.push_back(triangle);
  kernel.scheduling = block_scheduling::persistent;
  const auto device = plain_device();
  for (const double side : {4096., 8192., 16384., 1048576.}) {
    SCOPED_TRACE(side);
    EXPECT_LE(rate(device, &kernel, measured_call(triangle, side, side)),
              rate(device, &kernel, measured_call(square, side, side)));
  }
}

// 32 tiles of 8 heads are 2.56 a multiprocessor of 100, and their longest, two mean ones, more at the end: 4.56 where dealt out
// evenly 2.56.
TEST(kernel_cost, the_last_blocks_of_few_heads_keep_a_kernel_of_waves_waiting) {
  auto kernel = kernel_of({.mask = mask_kind::causal,
                           .heads = {100'000},
                           .rows = {4096},
                           .cols = {4096},
                           .square = true,
                           .rates = {tflops(300)}});
  const auto device = plain_device();
  const auto call = causal_block(4096, 4096, 0, 8);
  kernel.scheduling = block_scheduling::persistent;
  const double even = busy_seconds(device, &kernel, call);
  kernel.scheduling = block_scheduling::waves;
  EXPECT_NEAR(busy_seconds(device, &kernel, call) / even, 4.56 / 2.56, 1e-3);
}

/// Where a table's sizes were measured with fewer heads each, what the last blocks take is in its rates already.
TEST(kernel_cost, a_table_is_right_at_the_heads_that_it_was_measured_with) {
  auto kernel = kernel_of({.mask = mask_kind::causal,
                           .heads = {32, 8},
                           .rows = {1024, 4096},
                           .cols = {1024, 4096},
                           .square = true,
                           .rates = {tflops(200), tflops(300)}});
  kernel.scheduling = block_scheduling::waves;
  const auto& table = kernel.tables.front();
  for (const double side : {1024., 4096.})
    EXPECT_NEAR(rate(plain_device(), &kernel, measured_call(table, side, side)),
                side > 1024 ? 300e12 : 200e12, 1e6);
}

// Groups of 1 and 4 take 1 and 3 us a block: groups of 2 are half way, of 8 as those of 4.
TEST(kernel_law, between_numbers_of_query_heads_of_a_kv_head) {
  kernel_profile kernel;
  kernel.laws = {{.group = 1, .tile = 128, .block = seconds(1e-6)},
                 {.group = 4, .tile = 128, .block = seconds(3e-6)}};
  const auto of_group = [&](std::int64_t group) {
    auto call = block(128, 128, 8);
    call.kv_heads = 8 / group;
    return busy_seconds(plain_device(), &kernel, call);
  };
  EXPECT_NEAR(of_group(1), 1e-6, 1e-15);
  EXPECT_NEAR(of_group(2), 2e-6, 1e-15);
  EXPECT_NEAR(of_group(4), 3e-6, 1e-15);
  EXPECT_NEAR(of_group(8), 3e-6, 1e-15);
}

TEST(kernel_cost, short_loops_pay_for_their_fixed_part) {
  const auto h100 = shipped("h100-sxm5");
  const auto* fa3 = h100.kernel("fa3");
  // A tile's time is fixed + growth x columns through 512 (467) and 1024 (565): fixed = 272
  // columns.
  const double fixed = 512 * 1024 * (1 / 467.0 - 1 / 565.0) / (1024 / 565.0 - 512 / 467.0);
  EXPECT_NEAR(rate(h100, fa3, block(8192, 128)), 467e12 * 128 / 512 * (fixed + 512) / (fixed + 128),
              1e6);
  EXPECT_NEAR(rate(h100, fa3, block(8192, 1 << 20)), 648e12, 1e6);
}

TEST(kernel_cost, one_row_costs_as_much_as_a_tile_where_keys_are_not_split) {
  const auto h100 = shipped("h100-sxm5");
  const auto *cudnn = h100.kernel("cudnn-9"), *fa3 = h100.kernel("fa3");
  EXPECT_EQ(kernel_time(h100, cudnn, block(1, 8192)), kernel_time(h100, cudnn, block(128, 8192)));
  EXPECT_LT(kernel_time(h100, fa3, block(1, 8192)), kernel_time(h100, fa3, block(128, 8192)));
  EXPECT_LT(kernel_time(h100, fa3, block(128, 8192, 1024)),
            kernel_time(h100, fa3, block(256, 8192, 1024)));
}

TEST(kernel_cost, few_tiles_leave_multiprocessors_idle) {
  const auto h100 = shipped("h100-sxm5");  // 132 multiprocessors
  const auto* fa3 = h100.kernel("fa3");
  const auto one_tile = busy_seconds(h100, fa3, block(128, 8192, 1));
  EXPECT_DOUBLE_EQ(busy_seconds(h100, fa3, block(128, 8192, 132)), one_tile);
  EXPECT_GT(busy_seconds(h100, fa3, block(4096, 8192, 5)),
            1.6 * one_tile);  // 160 tiles: a second wave
  EXPECT_LE(busy_seconds(h100, fa3, block(4096, 8192, 5)), 2 * one_tile);
  // the longest row tile of a lone causal block takes as long as without the mask
  EXPECT_NEAR(busy_seconds(h100, fa3, causal_block(1024, 1024, 0, 2)),
              busy_seconds(h100, fa3, block(1024, 1024, 2)), 1e-9);
}

TEST(kernel_cost, thin_blocks_have_one_long_loop) {
  const auto h100 = shipped("h100-sxm5");
  const auto* fa3 = h100.kernel("fa3");
  const auto tall = block(32768, 512), wide = block(512, 32768);
  EXPECT_GT(rate(h100, fa3, wide), rate(h100, fa3, tall) * 0.7);
  EXPECT_LT(rate(h100, fa3, block(128, 131072, 8)), 60e12);  // 8 tiles on 132 multiprocessors
  // backward, tiles lie along the columns
  EXPECT_LT(rate(h100, fa3, backward(block(131072, 128, 8))), 60e12);
  EXPECT_GT(rate(h100, fa3, backward(block(128, 131072, 8))), 60e12);
}

TEST(kernel_cost, offset_causal_lies_between_causal_and_full) {
  const auto h100 = shipped("h100-sxm5");
  const auto* fa3 = h100.kernel("fa3");
  const auto triangle = kernel_time(h100, fa3, causal_block(4096, 4096, 0));
  const auto trapezoid = kernel_time(h100, fa3, causal_block(4096, 4096, 2048));
  const auto rectangle = kernel_time(h100, fa3, block(4096, 4096));
  EXPECT_LT(triangle, trapezoid);
  EXPECT_LT(trapezoid, rectangle);
}

/// Forward: 2 row sizes x 3 column sizes, 10 heads.
kernel_table grid() {
  kernel_table table;
  table.heads = {10};
  table.rows = {1280, 12800};
  table.cols = {1000, 2000, 4000};
  for (const double rate : {100, 200, 300, 200, 400, 500}) table.rates.push_back(tflops(rate));
  return table;
}

TEST(kernel_cost, grid_tables_are_reproduced_and_interpolated) {
  const auto device = plain_device();
  const auto table = grid();
  const auto kernel = kernel_of(table);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const auto call = measured_call(table, table.rows[i], table.cols[j]);
      EXPECT_NEAR(rate(device, &kernel, call) / table.rates[i * 3 + j].value(), 1, 1e-9);
    }
  }
  // 1500 columns: half way in time from 1000 / 100 to 2000 / 200, 150; from 1000 / 200 to 2000 /
  // 400, 300. 4096 rows: log10(3.2) of the way from 1280 to 12800.
  EXPECT_NEAR(rate(device, &kernel, block(4096, 1500, 10)) / 1e12,
              150 * std::pow(2, std::log10(3.2)), 1e-6);
  EXPECT_NEAR(rate(device, &kernel, block(12800, 100000, 10)), 500e12, 1e6);
}

TEST(kernel_cost, grid_tables_serve_other_head_counts_by_their_parallel_rows) {
  const auto device = plain_device();
  const auto kernel = kernel_of(grid());
  EXPECT_NEAR(rate(device, &kernel, block(1280, 2000, 100)), 400e12, 1e6);
  EXPECT_NEAR(rate(device, &kernel, block(12800, 2000, 1)), 200e12, 1e6);
}

TEST(kernel_cost, backward_grids_run_their_tiles_along_the_columns) {
  const auto device = plain_device();
  auto table = grid();
  table.pass = pass_kind::backward;
  std::swap(table.rows, table.cols);
  table.rates.clear();
  for (const double rate : {100, 200, 200, 400, 300, 500}) table.rates.push_back(tflops(rate));
  const auto forward_kernel = kernel_of(grid()), backward_kernel = kernel_of(table);
  EXPECT_NEAR(rate(device, &backward_kernel, backward(block(1500, 4000, 20))),
              rate(device, &forward_kernel, block(4000, 1500, 20)), 1e6);
}

/// Every shipped device with each of its kernels.
std::vector<device_profile> devices_by_kernel(bool has_laws) {
  std::vector<device_profile> devices;
  for (const auto& device : all_shipped()) {
    for (const auto& kernel : device.kernels) {
      if (kernel.laws.empty() == has_laws) continue;
      devices.push_back(device);
      devices.back().kernels = {kernel};
    }
  }
  return devices;
}

/// Those with tables, or without any kernel, and one measured on a grid. Laws jump where a round of blocks is full, and
/// from one mask and sharing of heads to the next.
std::vector<device_profile> devices_by_kernel() {
  auto devices = devices_by_kernel(false);
  for (const auto& device : all_shipped()) {
    if (device.kernels.empty()) devices.push_back(device);
  }
  devices.push_back(plain_device());
  devices.back().kernels = {kernel_of(grid())};
  return devices;
}

class random_calls {
 public:
  std::int64_t size(double most) {
    return std::llround(std::exp(std::uniform_real_distribution(0.0, std::log(most))(random_)));
  }
  std::int64_t below(std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_);
  }
  kernel_call call() {
    auto call = block(size(65536), size(65536), size(128));
    call.batch = size(4);
    call.head_dim = size(256);
    call.pass = below(2) ? pass_kind::forward : pass_kind::backward;
    return call;
  }

 private:
  std::mt19937_64 random_{20240611};
};

/// Of a kernel that has several, by head dimension.
std::map<std::int64_t, int> tiles_taken(const device_profile& device, const kernel_profile* kernel,
                                        kernel_call call) {
  std::map<std::int64_t, int> tiles;
  for (const auto& law : kernel ? kernel->laws : std::vector<kernel_law>()) {
    if (law.taken_below == 0) continue;
    call.head_dim = law.head_dim;
    tiles[law.head_dim] = law_taken(device, *kernel, call)->tile;
  }
  return tiles;
}

/// But for keys that become whole tiles (kernel_profile::ragged), and where the kernel takes another tile.
TEST(kernel_cost, larger_rectangles_never_take_less_time) {
  auto devices = devices_by_kernel();
  for (const auto& device : devices_by_kernel(true)) devices.push_back(device);
  random_calls random;
  for (int n = 0; n < 20000; ++n) {
    const auto& device = devices[static_cast<std::size_t>(n) % devices.size()];
    const auto* kernel = device.kernel("");
    const auto call = random.call();
    auto larger = call;
    (random.below(2) ? larger.rows : larger.cols) += random.size(4096);
    larger.pairs = larger.rows * larger.cols;
    if (kernel && kernel->ragged > 1 && larger.cols % 128 == 0) continue;
    if (tiles_taken(device, kernel, call) != tiles_taken(device, kernel, larger)) continue;
    EXPECT_GE(kernel_time(device, kernel, larger).value() * (1 + 1e-12),
              kernel_time(device, kernel, call).value())
        << device.name << ' ' << name_of(call.pass) << ' ' << call.rows << 'x' << call.cols
        << " to " << larger.rows << 'x' << larger.cols << ", heads " << call.heads;
  }
}

TEST(kernel_cost, more_visible_pairs_or_heads_never_take_less_time) {
  const auto devices = devices_by_kernel();
  random_calls random;
  for (int n = 0; n < 20000; ++n) {
    const auto& device = devices[static_cast<std::size_t>(n) % devices.size()];
    const auto* kernel = device.kernel("");
    auto call = random.call();
    const auto whole = call.pairs;
    call.pairs = 1 + random.below(whole);
    auto larger = call;
    if (random.below(2)) {
      larger.pairs += random.below(whole - call.pairs + 1);
    } else {
      larger.heads += random.size(16);
    }
    EXPECT_GE(kernel_time(device, kernel, larger).value() * (1 + 1e-12),
              kernel_time(device, kernel, call).value())
        << device.name << ' ' << name_of(call.pass) << ' ' << call.rows << 'x' << call.cols << ' '
        << call.pairs << " to " << larger.pairs << " pairs, " << larger.heads << " heads";
  }
}

TEST(kernel_cost, growing_causal_blocks_never_take_less_time) {
  const auto devices = devices_by_kernel();
  random_calls random;
  for (int n = 0; n < 4000; ++n) {
    const auto& device = devices[static_cast<std::size_t>(n) % devices.size()];
    const auto* kernel = device.kernel("");
    const auto pass = random.below(2) ? pass_kind::forward : pass_kind::backward;
    const auto rows = random.size(8192), offset = random.size(8192);
    const auto heads = random.size(64), more = random.size(1024);
    auto call = causal_block(rows, rows + offset, offset, heads);
    // new rows at the end, with the keys they see; or new keys at the start
    auto larger = random.below(2) ? causal_block(rows + more, rows + more + offset, offset, heads)
                                  : causal_block(rows, rows + offset + more, offset + more, heads);
    call.pass = larger.pass = pass;
    EXPECT_GE(kernel_time(device, kernel, larger).value() * (1 + 1e-12),
              kernel_time(device, kernel, call).value())
        << device.name << ' ' << name_of(pass) << ' ' << rows << " rows, offset " << offset << ", "
        << more << " more, heads " << heads;
  }
}

TEST(kernel_cost, one_more_row_changes_little) {
  const auto devices = devices_by_kernel();
  random_calls random;
  for (int n = 0; n < 20000; ++n) {
    const auto& device = devices[static_cast<std::size_t>(n) % devices.size()];
    const auto* kernel = device.kernel("");
    const auto call = random.call();
    auto next = call;
    next.rows += 1;
    next.pairs = next.rows * next.cols;
    const double ratio = busy_seconds(device, kernel, next) / busy_seconds(device, kernel, call);
    EXPECT_LT(ratio, 1 + std::max(0.13, 1.0 / static_cast<double>(call.rows)));
  }
}

TEST(kernel_cost, no_rate_above_the_tables_or_the_peak) {
  const auto devices = devices_by_kernel();
  random_calls random;
  for (int n = 0; n < 20000; ++n) {
    const auto& device = devices[static_cast<std::size_t>(n) % devices.size()];
    auto call = random.call();
    call.pairs = 1 + random.below(call.pairs);
    flop_rate most;
    if (const auto* kernel = device.kernel("")) {
      for (const auto& table : kernel->tables) {
        if (table.pass != call.pass) continue;
        most = std::max(most, *std::max_element(table.rates.begin(), table.rates.end()));
      }
    }
    if (most == flop_rate()) most = device.peak_half;
    EXPECT_LE(rate(device, device.kernel(""), call), most.value() * (1 + 1e-9)) << device.name;
  }
}

// --- Laws -------------------------------------------------------------------------------------------

/// 10 multiprocessors; a block takes 2 us + 10 ns a token of its loop.
device_profile device_with_law(const kernel_law& law) {
  device_profile device{.name = "d",
                        .peak_half = flop_rate(1e18),
                        .peak_fp32 = flop_rate(1e18),
                        .memory_bandwidth = bandwidth(1e12),
                        .multiprocessors = 10};
  device.kernels.push_back({.name = "k", .laws = {law}});
  return device;
}

const kernel_law forward_law{
    .tile = 128, .start = seconds(3e-6), .block = seconds(2e-6), .token = seconds(10e-9)};

double law_time(const kernel_law& law, const kernel_call& call) {
  const auto device = device_with_law(law);
  return busy_seconds(device, &device.kernels[0], call) * 1e6;
}

// 5 heads of 2 tiles fill 10 multiprocessors once, of 3 tiles (257 rows) twice: 3 + (2 + 10) us and 3 + 2 (2 + 10) us.
TEST(kernel_law, whole_rounds_of_blocks) {
  EXPECT_NEAR(law_time(forward_law, block(256, 1000, 5)), 15, 1e-9);
  EXPECT_NEAR(law_time(forward_law, block(257, 1000, 5)), 27, 1e-9);
  auto two = forward_law;
  two.slots = 2;
  EXPECT_NEAR(law_time(two, block(257, 1000, 5)), 15, 1e-9);
}

TEST(kernel_law, whole_steps_of_a_loop) {
  auto law = forward_law;
  law.step = 128;
  EXPECT_NEAR(law_time(law, block(256, 1000, 5)), 3 + 2 + 10.24, 1e-9);
  EXPECT_NEAR(law_time(law, block(256, 1024, 5)), 3 + 2 + 10.24, 1e-9);
}

// Triangle of 10 tiles, mean loop 704. One head: the longest block, 3 + 2 + 12.8 us. 20 heads: 20 blocks a multiprocessor
// and half a one, 3 + 20.5 (2 + 7.04) us. A triangle holds 1280 x 1281 / 2 pairs, 1/1280 of the way to the rectangle.
TEST(kernel_law, triangles) {
  const auto between = [](double triangle, double rectangle) {
    return triangle + (rectangle - triangle) / 1280;
  };
  EXPECT_NEAR(law_time(forward_law, causal_block(1280, 1280, 0, 1)), 17.8,
              1e-9);  // as long as the rectangle
  EXPECT_NEAR(law_time(forward_law, causal_block(1280, 1280, 0, 20)),
              between(3 + 20.5 * 9.04, 3 + 20 * 14.8), 1e-6);
}

// 10 slots. Two heads of 6 tiles are two more: the longest of them is 1/6 of 768 tokens, which of two heads a longest first tile
// seldom meets: 3 + 2 x 2 + 7.68 us. Four heads of 3 tiles: 384 and 128 tokens, 3 + 2 x 2 + 5.12 us.
TEST(kernel_law, second_tiles_that_are_taken_ahead) {
  auto law = forward_law;
  law.mask = mask_kind::causal;
  auto ahead = law;
  ahead.ahead = true;
  const auto time = [](const kernel_law& l, std::int64_t side, std::int64_t heads) {
    auto device = device_with_law(l);
    auto full = l;
    full.mask = mask_kind::full;
    full.start = seconds(1);  // no triangle is capped
    device.kernels[0].laws.push_back(full);
    const auto us = [&](const kernel_call& call) {
      return busy_seconds(device, &device.kernels[0], call) * 1e6;
    };
    // side x (side + 1) / 2 pairs are 1 / side of the way from the triangle to the rectangle
    const double way = 1.0 / static_cast<double>(side);
    return (us(causal_block(side, side, 0, heads)) - way * us(block(side, side, heads))) /
           (1 - way);
  };
  EXPECT_NEAR(time(ahead, 768, 1), time(law, 768, 1), 1e-6);
  EXPECT_NEAR(time(law, 768, 2), 3 + (1.2 + 0.5) * (2 + 4.48), 1e-6);
  EXPECT_NEAR(time(ahead, 768, 2), 3 + 2 * 2 + 7.68, 1e-6);
  EXPECT_NEAR(time(ahead, 384, 4), 3 + 2 * 2 + 5.12, 1e-6);
}

// 10 slots, tiles of 128 in 2 us + 10 ns a token, or of 64 in 1 us + 6 ns where that is less than 0.9 of the rows in all rounds.
TEST(kernel_law, of_the_tile_that_the_kernel_takes) {
  auto device = device_with_law(forward_law);
  auto small = forward_law;
  small.tile = 64;
  small.taken_below = 0.9;
  small.block = seconds(1e-6);
  small.token = seconds(6e-9);
  device.kernels[0].laws.push_back(small);
  const auto time = [&](std::int64_t rows, std::int64_t heads) {
    return busy_seconds(device, &device.kernels[0], block(rows, 1000, heads)) * 1e6;
  };
  EXPECT_NEAR(time(256, 5), 3 + 2 + 10, 1e-9);           // 128 rows either way
  EXPECT_NEAR(time(256, 6), 3 + 3 * (1 + 6), 1e-9);      // 256 or 192
  EXPECT_NEAR(time(64, 10), 3 + 1 + 6, 1e-9);            // 128 or 64
  EXPECT_NEAR(time(1216, 10), 3 + 10 * (2 + 10), 1e-9);  // 1280 or 1216, hardly less
  EXPECT_EQ(law_taken(device, device.kernels[0], block(256, 1000, 6))->tile, 64);
  EXPECT_EQ(law_taken(device, device.kernels[0], block(256, 1000, 5))->tile, 128);
}

// Backward, 1024 rows, 2432 columns of which the last 1024 form a triangle: 11 whole tiles take two rounds of 2 + 10.24 us, and
// the triangle's 8 find room in the second. By pairs alone it would be 0.58 of the way from a triangle's 17.7 us.
TEST(kernel_law, tiles_beside_a_triangle_go_in_whole_rounds) {
  auto law = forward_law;
  law.pass = pass_kind::backward;
  law.start = {};
  EXPECT_NEAR(law_time(law, backward(causal_block(1024, 2432, 1408, 1))), 2 * 12.24, 1e-9);
}

// 1280 rows of which each sees no more keys than its number, 2560 keys: a triangle of 10 tiles, 5 heads are 5.5 blocks of 704 rows
// a multiprocessor; what computes the other half, too, has 100 blocks of 1280 rows.
TEST(kernel_law, keys_that_no_query_sees) {
  auto law = forward_law;
  law.pass = pass_kind::backward;
  auto device = device_with_law(law);
  const auto call = backward(causal_block(1280, 2560, 0, 5));
  const auto time = [&] { return busy_seconds(device, &device.kernels[0], call) * 1e6; };
  EXPECT_NEAR(time(), 3 + 5.5 * (2 + 7.04), 1e-6);
  device.kernels[0].skips_unseen = false;
  EXPECT_NEAR(time(), 3 + 10 * 14.8, 1e-6);
}

// Of 1000 keys the last tile is not whole, of 1024 it is.
TEST(kernel_law, some_kernels_are_slower_on_keys_that_are_not_whole_tiles) {
  auto device = device_with_law(forward_law);
  device.kernels[0].ragged = 1.25;
  const auto time = [&](const kernel_call& call) {
    return busy_seconds(device, &device.kernels[0], call) * 1e6;
  };
  EXPECT_NEAR(time(block(256, 1000, 5)), 1.25 * 15, 1e-9);
  EXPECT_NEAR(time(block(256, 1024, 5)), 15.24, 1e-9);
  const auto triangle = causal_block(1000, 1000, 0, 5);
  EXPECT_NEAR(time(triangle), law_time(forward_law, triangle), 1e-9);
}

TEST(call_launch, by_pass_and_for_few_rows_by_requests) {
  const kernel_profile kernel{.name = "k",
                              .split = {.efficiency = 0.9},
                              .host = {.forward = seconds(6),
                                       .backward = seconds(16),
                                       .few_rows = seconds(10),
                                       .request = seconds(3)}};
  EXPECT_EQ(call_launch(&kernel, block(256, 1000, 5)), seconds(6));
  EXPECT_EQ(call_launch(&kernel, backward(block(256, 1000, 5))), seconds(16));
  EXPECT_EQ(call_launch(&kernel, block(1, 1000, 5), 4), seconds(10 + 3 * 3));
  EXPECT_EQ(call_launch(nullptr, block(1, 1000, 5)), seconds());
}

// 8 heads in groups of 4, 640 columns: 5 tiles x 2 K/V heads at once, each loops over 4 x 100 rows. Apart: 40 blocks, 4
// rounds of 100 rows. Each of 800 rows adds 1 ns.
TEST(kernel_law, backward_over_groups_of_heads) {
  auto law = forward_law;
  law.pass = pass_kind::backward;
  law.row = seconds(1e-9);
  auto call = backward(block(100, 640, 8));
  call.kv_heads = 2;
  EXPECT_NEAR(law_time(law, call), 3 + 4 * (2 + 1) + 0.8, 1e-9);
  law.grouped = true;
  EXPECT_NEAR(law_time(law, call), 3 + 2 + 4 + 0.8, 1e-9);
}

TEST(kernel_law, of_the_mask_and_between_the_sharings_of_heads) {
  auto device = device_with_law(forward_law);
  auto& laws = device.kernels[0].laws;
  laws[0].start = seconds(1e-2);  // no triangle takes longer than the rectangle
  for (const int group : {1, 8}) {
    auto law = forward_law;
    law.mask = mask_kind::causal;
    law.group = group;
    law.start = seconds(group * 100e-6);
    laws.push_back(law);
  }
  auto call = causal_block(1280, 1280, 0, 8);
  const auto start = [&](int kv_heads) {
    call.kv_heads = kv_heads;
    return busy_seconds(device, &device.kernels[0], call) * 1e6;
  };
  EXPECT_NEAR(start(1) - start(8), 700 * (1 - 1 / 1280.),
              1e-6);  // a part of it is the rectangle's law
  EXPECT_NEAR(start(2) - start(8), 700 * 2 / 3. * (1 - 1 / 1280.),
              1e-6);  // log 4 is two thirds of log 8
}

TEST(kernel_law, half_the_head_dimension_takes_half_as_long_but_for_the_start) {
  auto call = block(256, 1000, 5);
  call.head_dim = 64;
  EXPECT_NEAR(law_time(forward_law, call), 9, 1e-9);
}

// One round of blocks: 2 + 10 us at 128, 1 + 7 us at 64; in between, and below by the times of a token, 10 and 7 ns.
TEST(kernel_law, time_is_linear_in_the_head_dimension) {
  auto device = device_with_law(forward_law);
  auto small = forward_law;
  small.head_dim = 64;
  small.block = seconds(1e-6);
  small.token = seconds(7e-9);
  device.kernels[0].laws.push_back(small);
  auto call = block(256, 1000, 5);
  const auto time = [&](std::int64_t head_dim) {
    call.head_dim = head_dim;
    return busy_seconds(device, &device.kernels[0], call) * 1e6;
  };
  EXPECT_NEAR(time(96), 3 + (12 + 8) / 2.0, 1e-9);
  EXPECT_NEAR(time(32), 3 + 8 * (1 - 0.5 * (10 / 7.0 - 1)), 1e-9);
}

TEST(kernel_law, runs_faster_from_idle_and_leaves_room_between_its_waves) {
  auto device = device_with_law(forward_law);
  auto& kernel = device.kernels[0];
  kernel.boost = 1.25;
  auto call = block(257, 1000, 5);
  EXPECT_NEAR(busy_seconds(device, &kernel, call) * 1e6, 27, 1e-9);
  const auto idle = kernel_time(device, &kernel, call, run_start::idle) - device.kernel_launch;
  EXPECT_NEAR(idle.value() * 1e6, 27 / 1.25, 1e-9);
  EXPECT_EQ(kernel_parts(device, &kernel, call), 2);  // the second wave fills half of the device
  call.pairs /= 2;                                    // blocks of all lengths
  EXPECT_EQ(kernel_parts(device, &kernel, call), 1.5);
  kernel.scheduling = block_scheduling::persistent;
  EXPECT_EQ(kernel_parts(device, &kernel, call), 1);
  EXPECT_EQ(kernel_parts(device, nullptr, call), 1);
}

/// 100 multiprocessors, 1 TB/s of which 0.8 is reached, tables of 500 TFLOP/s.
device_profile decoding_device() {
  device_profile d;
  d.multiprocessors = 100;
  d.peak_half = flop_rate(1000e12);
  d.memory_bandwidth = bandwidth(1e12);
  d.memory_efficiency = 0.5;
  d.kernel_launch = seconds(1e-6);
  kernel_profile k;
  k.tables.push_back(
      {.heads = {64}, .rows = {512}, .cols = {512}, .square = true, .rates = {flop_rate(500e12)}});
  k.split = {.efficiency = 0.8, .rows = 64, .least = 100, .filling = 0.5, .combine = seconds(2e-6)};
  d.kernels.push_back(k);
  return d;
}

kernel_call decoding_call(std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  return {
      .batch = batch, .heads = 8, .kv_heads = 1, .rows = rows, .cols = cols, .pairs = rows * cols};
}

double decoding_us(const kernel_call& call) {
  const auto d = decoding_device();
  return kernel_time(d, &d.kernels[0], call).value() * 1e6;
}

double decoding_splits(const kernel_call& call) {
  const auto d = decoding_device();
  return key_splits(d, &d.kernels[0], call);
}

/// Launch 1 us, start of combining 2 us, partial outputs of 8 heads by 129 numbers of 4 bytes, written and read at 0.5 TB/s.
double around(double splits, double rows) {
  return 1 + 2 + splits * rows * 8 * 129 * 4 * 2 / 0.5e6;
}

// Keys of 576 elements, values of 512: 100000 x 1088 x 2 bytes at 0.8 TB/s, partial outputs of 512 elements and a log-sum-exp.
TEST(key_split, reads_keys_and_values_of_their_own_sizes) {
  auto call = decoding_call(1, 1, 100000);
  call.head_dim = 576;
  call.v_head_dim = 512;
  EXPECT_NEAR(decoding_us(call), 272 + 1 + 2 + 100 * 8 * 513 * 4 * 2 / 0.5e6, 1e-9);
  call.latent = true;  // values are in the keys
  EXPECT_NEAR(decoding_us(call), 144 + 1 + 2 + 100 * 8 * 513 * 4 * 2 / 0.5e6, 1e-9);
}

// One block for 8 query heads of one K/V head, in 100 splits. K and V are 51.2 MB, read at 0.8 TB/s in 64 us.
TEST(key_split, of_few_rows_reads_the_keys_at_the_memorys_rate) {
  EXPECT_EQ(decoding_splits(decoding_call(1, 1, 100000)), 100);
  EXPECT_NEAR(decoding_us(decoding_call(1, 1, 100000)), 64 + around(100, 1), 1e-9);
}

// The 8 rows of 8 tokens fill the block: no more to read.
TEST(key_split, query_heads_of_a_key_head_share_its_blocks) {
  EXPECT_EQ(decoding_splits(decoding_call(1, 8, 100000)), 100);
  EXPECT_NEAR(decoding_us(decoding_call(1, 8, 100000)), 64 + around(100, 8), 1e-9);
}

// 100 requests are a block for each multiprocessor.
TEST(key_split, a_batch_that_fills_the_device_is_not_split) {
  EXPECT_EQ(decoding_splits(decoding_call(100, 1, 100000)), 1);
  EXPECT_NEAR(decoding_us(decoding_call(100, 1, 100000)), 6400 + around(1, 100), 1e-9);
}

// 1000 keys are 10 splits: 10 % of the device, where 50 % read at the full rate.
TEST(key_split, short_caches_leave_multiprocessors_idle) {
  EXPECT_EQ(decoding_splits(decoding_call(1, 1, 1000)), 10);
  EXPECT_NEAR(decoding_us(decoding_call(1, 1, 1000)), 0.64 / (0.1 / 0.5) + around(10, 1), 1e-9);
}

TEST(key_split, is_of_few_rows_and_forward_only) {
  EXPECT_EQ(decoding_splits(decoding_call(1, 128, 100000)), 1);
  auto backward = decoding_call(1, 1, 100000);
  backward.pass = pass_kind::backward;
  EXPECT_EQ(decoding_splits(backward), 1);
  const auto d = decoding_device();
  EXPECT_EQ(key_splits(d, nullptr, decoding_call(1, 1, 100000)), 1);
}

}  // namespace kernel_cost_test
}  // namespace attnsim
