#include "model/cluster/device.hpp"

#include <gtest/gtest.h>

#include "model/config.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace device_test {

device_profile read(const std::string& text) {
  return read_device(config_node::parse_text(text, "d.yaml"));
}

const std::string required =
    "name: d\n"
    "peak: {half: 100 TFLOP/s, fp32: 10 TFLOP/s}\n"
    "memory: {capacity: 1 GB, bandwidth: 1 TB/s}\n"
    "multiprocessors: 10\n";

std::string with_table(const std::string& table) {
  return required + "kernels:\n- name: k\n  tables:\n  - " + table + "\n";
}

TEST(read_device, what_is_not_given_costs_nothing) {
  const auto device = read(required);
  EXPECT_EQ(device.peak(data_type::bf16), flop_rate(100e12));
  EXPECT_EQ(device.peak(data_type::fp32), flop_rate(10e12));
  EXPECT_EQ(device.memory, byte_count(1'000'000'000));
  EXPECT_EQ(device.memory_efficiency, 1);
  EXPECT_EQ(device.roofline_efficiency, 1);
  EXPECT_EQ(device.kernel_launch, seconds(0));
  EXPECT_EQ(device.communication_slowdown, 1);
  EXPECT_EQ(device.transport(link_kind::network).efficiency, 1);
  EXPECT_EQ(device.transport(link_kind::network).channels, 0);
  EXPECT_EQ(device.kernel(""), nullptr);
}

const std::string with_fp8_peak =
    "name: d\n"
    "peak: {half: 100 TFLOP/s, fp32: 10 TFLOP/s, fp8: 200 TFLOP/s}\n"
    "memory: {capacity: 1 GB, bandwidth: 1 TB/s}\n"
    "multiprocessors: 10\n";
const std::string half_table =
    "{pass: forward, mask: full, head_dim: 128, heads: 1, square: [1024], tflops: [50]}";
const std::string fp8_table =
    "{pass: forward, mask: full, head_dim: 128, heads: 1, square: [1024], tflops: [150]}";

TEST(read_device, kernels_have_rates_of_fp8_of_their_own) {
  const auto d = read(with_fp8_peak + "kernels:\n- {name: a, tables: [" + half_table +
                      "]}\n- {name: b, tables: [" + half_table +
                      "], fp8: {basis: published, source: there, tables: [" + fp8_table +
                      "]}}\n- {name: c, fp8: {tables: [" + fp8_table + "]}}\n");
  EXPECT_EQ(d.peak(data_type::fp8), flop_rate(200e12));
  EXPECT_EQ(d.kernels[1].fp8.basis, basis::published);
  EXPECT_EQ(d.kernels[1].fp8.source, "there");
  EXPECT_EQ(d.kernels[1].tables_of(data_type::fp8).front().rates.front(), flop_rate(150e12));
  EXPECT_EQ(d.kernels[1].tables_of(data_type::bf16).front().rates.front(), flop_rate(50e12));
  EXPECT_FALSE(d.kernels[2].has_rates(data_type::bf16));
  EXPECT_EQ(d.kernel("")->name, "a");
  EXPECT_EQ(d.kernel("", data_type::fp8)->name, "b");
  EXPECT_EQ(d.kernel("a", data_type::fp8)->name, "a");
}

TEST(read_device, a_kernel_of_fp8_alone_is_no_default_of_other_types) {
  const auto d =
      read(with_fp8_peak + "kernels:\n- {name: c, fp8: {tables: [" + fp8_table + "]}}\n");
  EXPECT_EQ(d.kernel(""), nullptr);
  EXPECT_EQ(d.kernel("", data_type::fp8)->name, "c");
}

TEST(read_device, rates_of_fp8_want_a_peak) {
  const auto kernel = "kernels:\n- {name: c, fp8: {tables: [" + fp8_table + "]}}\n";
  EXPECT_ERROR(read(required + kernel), input_error,
               "d.yaml:6: kernels[0].fp8: '{...}': expected a device with an fp8 peak");
  EXPECT_ERROR(require_peak(read(required), data_type::fp8), infeasible,
               "dtype: 'fp8': d has no such products; expected bf16, fp16 or fp32");
  EXPECT_NO_THROW(require_peak(read(with_fp8_peak), data_type::fp8));
}

TEST(read_device, transports_are_read_by_kind) {
  const auto device = read(required +
                           "transports:\n"
                           "  nvlink: {efficiency: 0.9, latency: 5 us, collective_latency: 10 us, "
                           "step_latency: 1 us, channels: 4}\n"
                           "  network: {efficiency: 0.8, collective_efficiency: 0.7}\n"
                           "  pcie: {efficiency: 0.6, crowding: 0.5}\n");
  const auto& nvlink = device.transport(link_kind::nvlink);
  EXPECT_EQ(nvlink.efficiency, 0.9);
  EXPECT_EQ(nvlink.collective_efficiency, 0.9);
  EXPECT_EQ(nvlink.latency, parse<seconds>("5 us"));
  EXPECT_EQ(nvlink.collective_latency, parse<seconds>("10 us"));
  EXPECT_EQ(nvlink.step_latency, parse<seconds>("1 us"));
  EXPECT_EQ(nvlink.channels, 4);
  EXPECT_EQ(device.transport(link_kind::network).collective_efficiency, 0.7);
  EXPECT_EQ(nvlink.crowded(8), 1);
  const auto& host_memory = device.transport(link_kind::host_memory);
  EXPECT_EQ(host_memory.efficiency, 0.6);
  EXPECT_EQ(host_memory.crowded(5), 2);
  EXPECT_EQ(host_memory.crowded(2), 1);
  EXPECT_EQ(
      read(required + "transports: {pcie: {efficiency: 0.6}, host-memory: {efficiency: 0.4}}\n")
          .transport(link_kind::host_memory)
          .efficiency,
      0.4);
  EXPECT_ERROR(read(required + "transports:\n  network: {share_spread: 3}\n"), input_error,
               "d.yaml:6: transports.network.share_spread: '3': expected a standard deviation from "
               "0 to 2");
  EXPECT_ERROR(read(required + "transports:\n  pcie: {crowding: 3}\n"), input_error,
               "d.yaml:6: transports.pcie.crowding: '3': expected an exponent from 0 to 2");
}

TEST(read_device, ramps_channels_and_slowdowns) {
  const auto device = read(
      required +
      "communication_slowdown: 1.3\n"
      "idle_start: {launch: 6 us, launch_communication: 60 us}\n"
      "transports:\n"
      "  nvlink: {efficiency: 0.9, one_way_efficiency: 0.95, ramp: {bytes: [1000, 3000, 5000], us: "
      "[-1, 3, 2]}, channels: 4, channel_bandwidth: 20 GB/s, slowdown: 1.2, uncertainty: 0.1, "
      "several_peers: 0.3, wake: 18 us, run_ahead: 4 MiB}\n");
  const auto& nvlink = device.transport(link_kind::nvlink);
  EXPECT_EQ(nvlink.one_way_efficiency, 0.95);
  EXPECT_EQ(nvlink.all_reduce_efficiency, 0.9);
  EXPECT_EQ(nvlink.ramp.of(1), seconds(-1e-6));
  EXPECT_NEAR(nvlink.ramp.of(2500).value(), 2e-6, 1e-12);
  EXPECT_NEAR(nvlink.ramp.of(4000).value(), 2.5e-6, 1e-12);
  EXPECT_EQ(nvlink.all_reduce_ramp.of(1e9), seconds(2e-6));
  EXPECT_EQ(device.transport(link_kind::pcie).ramp.of(1e9), seconds());
  EXPECT_EQ(nvlink.limited(0.9, bandwidth(100e9)), 0.8);  // 4 x 20 GB/s
  EXPECT_EQ(nvlink.limited(0.7, bandwidth(100e9)), 0.7);
  EXPECT_EQ(device.slowdown(link_kind::nvlink), 1.2);
  EXPECT_EQ(device.slowdown(link_kind::pcie), 1.3);
  EXPECT_EQ(device.communication_uncertainty(link_kind::nvlink), 0.1);
  EXPECT_EQ(nvlink.several_peers, 0.3);
  EXPECT_EQ(nvlink.wake, parse<seconds>("18 us"));
  EXPECT_EQ(nvlink.run_ahead, parse<byte_count>("4 MiB"));
  EXPECT_EQ(device.transport(link_kind::pcie).run_ahead, byte_count());
  EXPECT_EQ(device.transport(link_kind::pcie).several_peers, 0);
  EXPECT_EQ(device.communication_uncertainty(link_kind::pcie), device.uncertainty.communication);
  EXPECT_EQ(device.idle_start.launch_communication, parse<seconds>("60 us"));
}

TEST(read_device, later_launches_are_as_the_first_where_nothing_else_is_said) {
  const auto first = read(required + "idle_start: {launch: 6 us, launch_communication: 60 us}\n");
  EXPECT_EQ(first.idle_start.next, parse<seconds>("6 us"));
  EXPECT_EQ(first.idle_start.next_communication, parse<seconds>("60 us"));
  EXPECT_EQ(first.idle_start.gap, seconds());
  const auto all = read(required +
                        "idle_start: {launch: 6 us, launch_communication: 60 us, next: 5 us, "
                        "next_communication: 15 us, call: 3 us, graph_launch: 20 us, gap: 4 us, "
                        "gap_communication: 3 us, sustained_after: 8 ms, sustained: 0.1}\n");
  EXPECT_EQ(all.idle_start.next, parse<seconds>("5 us"));
  EXPECT_EQ(all.idle_start.next_communication, parse<seconds>("15 us"));
  EXPECT_EQ(all.idle_start.call, parse<seconds>("3 us"));
  EXPECT_EQ(all.idle_start.graph_launch, parse<seconds>("20 us"));
  EXPECT_EQ(all.idle_start.gap, parse<seconds>("4 us"));
  EXPECT_EQ(all.idle_start.gap_communication, parse<seconds>("3 us"));
  EXPECT_EQ(all.idle_start.sustained_after, parse<seconds>("8 ms"));
  EXPECT_EQ(all.idle_start.sustained, 0.1);
}

// A tenth longer from the eighth second on.
TEST(idle_start_profile, kernels_are_slower_at_the_power_limit) {
  idle_start_profile idle;
  EXPECT_EQ(idle.sustained_time(seconds(100), seconds(10)), seconds(10));
  idle.sustained_after = seconds(8);
  idle.sustained = 0.1;
  EXPECT_EQ(idle.sustained_time(seconds(), seconds(8)), seconds(8));
  EXPECT_DOUBLE_EQ(idle.sustained_time(seconds(), seconds(18)).value(), 19);
  EXPECT_DOUBLE_EQ(idle.sustained_time(seconds(4), seconds(14)).value(), 15);
  EXPECT_DOUBLE_EQ(idle.sustained_time(seconds(20), seconds(10)).value(), 11);
}

TEST(read_device, a_ramp_has_a_time_for_each_size) {
  EXPECT_ERROR(read(required + "transports:\n  nvlink: {ramp: {bytes: [1000, 2000], us: [1]}}\n"),
               input_error,
               "d.yaml:6: transports.nvlink.ramp.us: '[...]': expected 2 times, one a size, got 1");
  EXPECT_ERROR(
      read(required + "transports:\n  nvlink: {ramp: {bytes: [2000, 1000], us: [1, 2]}}\n"),
      input_error,
      "d.yaml:6: transports.nvlink.ramp.bytes[1]: '1000': expected ascending sizes of at least 1");
}

TEST(read_device, kernel_laws) {
  const auto device =
      read(required +
           "kernels:\n"
           "- name: a\n"
           "  occupancy: {forward: persistent, backward: waves}\n"
           "  boost: 1.05\n"
           "  laws:\n"
           "  - {pass: backward, head_dim: 64, mask: causal, group: 4, tile: 192, slots: 2, "
           "grouped: true, start: "
           "3 us, block: 4 us, token: 12 ns, row: 1 ns, uneven: 0.25, diagonal: 0.5}\n");
  const auto& kernel = device.kernels.at(0);
  EXPECT_EQ(kernel.scheduling, block_scheduling::persistent);
  EXPECT_EQ(kernel.backward_scheduling, block_scheduling::waves);
  EXPECT_EQ(kernel.boost, 1.05);
  const auto& law = kernel.laws.at(0);
  EXPECT_EQ(law.pass, pass_kind::backward);
  EXPECT_EQ(law.mask, mask_kind::causal);
  EXPECT_EQ(law.group, 4);
  EXPECT_EQ(law.tile, 192);
  EXPECT_EQ(law.slots, 2);
  EXPECT_TRUE(law.grouped);
  EXPECT_EQ(law.token, parse<seconds>("12 ns"));
  EXPECT_EQ(law.uneven, 0.25);
  EXPECT_ERROR(read(required + "kernels:\n- {name: a}\n"), input_error,
               "d.yaml:6: kernels[0].tables: missing");
}

TEST(read_device, powers) {
  const auto read_power = [](const std::string& idle, const std::string& brake) {
    return read(
        required + "power: {limit: 700 W, idle: " + idle + ", brake: " + brake +
        ", products: 1.6 kW, memory: 500 W}\nkernels:\n- name: a\n  power: {forward: 800 W, "
        "backward: 710 W}\n  laws:\n  - {pass: forward, head_dim: 64, mask: full, tile: 128, "
        "block: 4 us, "
        "token: 12 ns}\n");
  };
  const auto device = read_power("130 W", "1000 W");
  EXPECT_TRUE(device.power.present());
  EXPECT_EQ(device.power.products, watts(1600));
  EXPECT_EQ(device.kernels.at(0).power.backward, watts(710));
  EXPECT_FALSE(read(required).power.present());
  EXPECT_ERROR(read_power("700 W", "1000 W"), input_error,
               "d.yaml:5: power.idle: '700 W': expected less than the limit");
  EXPECT_ERROR(read_power("130 W", "600 W"), input_error,
               "d.yaml:5: power.brake: '600 W': expected at least the limit");
}

TEST(read_device, kernel_laws_of_two_tiles) {
  const std::string law = "  - {pass: forward, head_dim: 64, mask: full, ",
                    head = required + "kernels:\n- name: a\n  laws:\n";
  const auto laws = read(head + law + "tile: 192, step: 128, token: 12 ns, ahead: true}\n" + law +
                         "tile: 128, taken_below: 0.9, token: 9 ns}\n")
                        .kernels.at(0)
                        .laws;
  EXPECT_EQ(laws.at(0).taken_below, 0);
  EXPECT_TRUE(laws.at(0).ahead);
  EXPECT_EQ(laws.at(0).step, 128);
  EXPECT_EQ(laws.at(1).step, 1);
  EXPECT_EQ(laws.at(1).taken_below, 0.9);
  EXPECT_FALSE(laws.at(1).ahead);
  EXPECT_ERROR(read(head + law + "tile: 128, taken_below: 0.9, token: 9 ns}\n"), input_error,
               "d.yaml:8: kernels[0].laws[0].taken_below: '0.9': expected a law of the same calls "
               "with the other tile beside it");
}

TEST(read_device, kernel_tables) {
  const auto device = read(
      required +
      "kernels:\n"
      "- name: a\n"
      "  source: s\n"
      "  basis: published\n"
      "  occupancy: persistent\n"
      "  staircase: true\n"
      "  key_split: {efficiency: 0.9, rows: 32, least: 256, filling: 0.4, combine: 3 us, "
      "uncertainty: "
      "0.2, assumed: a guess}\n"
      "  tables:\n"
      "  - {pass: forward, mask: full, head_dim: 128, heads: 32, square: [8, 16], tflops: [40, "
      "50]}\n"
      "  - {pass: backward, mask: causal, head_dim: 64, heads: 8, rows: [1, 2], cols: [4, 8, 16],\n"
      "     tflops: [[1, 2, 3], [4, 5, 6]]}\n"
      "- {name: b, tables: []}\n");
  const auto* kernel = device.kernel("");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->name, "a");
  EXPECT_EQ(kernel->source, "s");
  EXPECT_EQ(kernel->basis, basis::published);
  EXPECT_EQ(device.kernel("b")->basis, basis::assumed);
  EXPECT_EQ(kernel->scheduling, block_scheduling::persistent);
  EXPECT_TRUE(kernel->staircase);
  EXPECT_EQ(kernel->split.efficiency, 0.9);
  EXPECT_EQ(kernel->split.rows, 32);
  EXPECT_EQ(kernel->split.least, 256);
  EXPECT_EQ(kernel->split.filling, 0.4);
  EXPECT_EQ(kernel->split.combine, seconds(3e-6));
  EXPECT_EQ(kernel->split.assumed, "a guess");
  ASSERT_EQ(kernel->tables.size(), 2u);
  EXPECT_TRUE(kernel->tables[0].square);
  EXPECT_EQ(kernel->tables[0].cols, (std::vector<double>{8, 16}));
  EXPECT_EQ(kernel->tables[0].rates[1], flop_rate(50e12));
  EXPECT_EQ(kernel->tables[1].pass, pass_kind::backward);
  EXPECT_EQ(kernel->tables[1].mask, mask_kind::causal);
  EXPECT_EQ(kernel->tables[1].rates[3], flop_rate(4e12));
  EXPECT_EQ(device.kernel("b")->scheduling, block_scheduling::waves);
  EXPECT_ERROR(device.kernel("c"), input_error, "kernel: 'c': expected one of: a, b");
}

TEST(read_device, heads_of_a_table) {
  const auto heads_of = [](const std::string& heads, const std::string& sizes) {
    const auto device =
        read(required +
             "kernels:\n- {name: a, tables: [{pass: forward, mask: full, head_dim: 128, heads: " +
             heads + ", " + sizes + "}]}\n");
    return device.kernels.front().tables.front().heads;
  };
  const std::string square = "square: [8, 16], tflops: [40, 50]",
                    grid = "rows: [8, 16], cols: [8], tflops: [[40], [50]]";
  EXPECT_EQ(heads_of("4", square), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(heads_of("[4, 2]", square), (std::vector<std::int64_t>{4, 2}));
  EXPECT_ERROR(
      heads_of("[4]", square), input_error,
      "d.yaml:6: kernels[0].tables[0].heads: '[...]': expected one number, or 2, one a size");
  EXPECT_ERROR(heads_of("[4, 0]", square), input_error,
               "d.yaml:6: kernels[0].tables[0].heads[1]: '0': expected at least 1");
  EXPECT_ERROR(heads_of("[4, 2]", grid), input_error,
               "d.yaml:6: kernels[0].tables[0].heads: '[...]': expected one number");
}

TEST(read_device, where_its_figures_are_from) {
  const auto device = read(required +
                           "uncertainty: {compute: 0.1, sustained: 0.05, communication: 0.2}\n"
                           "transports:\n"
                           "  nvlink: {basis: published, pair: {basis: measured}}\n"
                           "  pcie: {basis: measured, pair: {collective_efficiency: 0.5}}\n");
  EXPECT_EQ(device.transport(link_kind::nvlink).basis, basis::published);
  EXPECT_EQ(device.transport(link_kind::nvlink).pair->basis, basis::measured);
  EXPECT_EQ(device.transport(link_kind::pcie).pair->basis, basis::measured);
  EXPECT_EQ(device.transport(link_kind::network).basis, basis::assumed);
  EXPECT_EQ(device.uncertainty.sustained, 0.05);
  EXPECT_ERROR(
      read(required + "transports: {nvlink: {basis: guess}}\n"), input_error,
      "d.yaml:5: transports.nvlink.basis: 'guess': expected one of: assumed, published, measured");
}

TEST(kernel, without_its_version_is_the_newest) {
  const auto device = read(required +
                           "kernels:\n"
                           "- {name: c-9.19, tables: []}\n"
                           "- {name: c-9.2, tables: []}\n"
                           "- {name: c-8, tables: []}\n"
                           "- {name: c-fast, tables: []}\n"
                           "- {name: d-1.0, tables: []}\n"
                           "- {name: d, tables: []}\n");
  EXPECT_EQ(device.kernel("c")->name, "c-9.19");
  EXPECT_EQ(device.kernel("c-9.2")->name, "c-9.2");
  EXPECT_EQ(device.kernel("d")->name, "d");
  EXPECT_EQ(device.find_kernel("c-9.20"), nullptr);
  EXPECT_EQ(device.find_kernel("c-"), nullptr);
  EXPECT_EQ(unversioned("c-9.19"), "c");
  EXPECT_EQ(unversioned("c-9.19-beta"), "c-9.19-beta");
  EXPECT_EQ(unversioned("fa3"), "fa3");
  EXPECT_EQ(unversioned("c-"), "c-");
}

TEST(read_device, matrix_products) {
  const auto read = [](const std::string& matmul) {
    return read_device(config_node::parse_text(
        "name: d\npeak: {half: 1000 TFLOP/s, fp32: 60 TFLOP/s, fp8: 2000 TFLOP/s}\n"
        "memory: {capacity: 80 GiB, bandwidth: 3 TB/s}\nmultiprocessors: 100\n" +
            matmul,
        "d.yaml"));
  };
  const auto m = read("matmul: {half: 0.8, fp8: 0.7, tile: [64, 128], depth: 100}\n").matmul;
  EXPECT_EQ(m.half, 0.8);
  EXPECT_EQ(m.fp8, 0.7);
  EXPECT_EQ(m.rows, 64);
  EXPECT_EQ(m.cols, 128);
  EXPECT_EQ(m.depth, 100);
  EXPECT_EQ(m.assumed, "");
  EXPECT_EQ(read("").peak_fp8, flop_rate(2000e12));
  EXPECT_EQ(read("").matmul.assumed, "no one's measurement");
  EXPECT_ERROR(read("matmul: {half: 1.2}\n"), input_error,
               "d.yaml:5: matmul.half: '1.2': expected a share above 0 and at most 1");
  EXPECT_ERROR(read("matmul: {tile: [64]}\n"), input_error,
               "d.yaml:5: matmul.tile: '[...]': expected rows and columns, such as [128, 256]");
  EXPECT_ERROR(read("matmul: {depth: -1}\n"), input_error,
               "d.yaml:5: matmul.depth: '-1': expected at least 0");
}

TEST(read_device, elementwise_operations) {
  const auto read = [](const std::string& elementwise) {
    return read_device(config_node::parse_text(
        "name: d\npeak: {half: 1000 TFLOP/s, fp32: 60 TFLOP/s}\n"
        "memory: {capacity: 80 GiB, bandwidth: 4 TB/s, efficiency: 0.5}\nmultiprocessors: 100\n"
        "kernel_launch: 1 us\n" +
            elementwise,
        "d.yaml"));
  };
  const auto d = read("elementwise: {norm: {efficiency: 0.25, start: 3 us, eager: 0.125}}\n");
  const byte_count megabyte(1'000'000);
  EXPECT_DOUBLE_EQ(d.elementwise_time(elementwise_kind::norm, megabyte).value(), 4e-6);
  EXPECT_DOUBLE_EQ(d.elementwise_time(elementwise_kind::gate, megabyte).value(), 1.5e-6);
  EXPECT_DOUBLE_EQ(d.eager_time(elementwise_kind::norm, megabyte).value(), 3e-6);
  EXPECT_DOUBLE_EQ(d.eager_time(elementwise_kind::gate, megabyte).value(), 1.5e-6);
  EXPECT_ERROR(read("elementwise: {norms: {efficiency: 1}}\n"), input_error,
               "d.yaml:6: elementwise.norms: unknown key; expected one of: plain, norm, "
               "norm_gradient, rotation, gate, gate_gradient, cast; did you mean norm?");
  EXPECT_ERROR(read("elementwise: {norm: {efficiency: 1.5}}\n"), input_error,
               "d.yaml:6: elementwise.norm.efficiency: '1.5': expected a share above 0 and at "
               "most 1");
}

TEST(read_device, refuses_bad_values) {
  EXPECT_ERROR(read("name: d\n"), input_error, "d.yaml:1: peak: missing");
  EXPECT_ERROR(
      read(required + "speed: 1\n"), input_error,
      "d.yaml:5: speed: unknown key; expected one of: name, source, peak, memory, multiprocessors, "
      "roofline_efficiency, kernel_launch, queues, communication_slowdown, idle_start, "
      "uncertainty, transports, kernels, matmul, power, elementwise");
  EXPECT_ERROR(read(required + "roofline_efficiency: 1.5\n"), input_error,
               "d.yaml:5: roofline_efficiency: '1.5': expected a share above 0 and at most 1");
  EXPECT_ERROR(read(required + "communication_slowdown: 0.5\n"), input_error,
               "d.yaml:5: communication_slowdown: '0.5': expected a factor of at least 1");
  EXPECT_ERROR(read(required + "kernel_launch: 3\n"), input_error,
               "d.yaml:5: kernel_launch: '3': expected a time with its unit, such as '2 us'");
  EXPECT_ERROR(read(required + "transports: {nvlink: {channels: 11}}\n"), input_error,
               "d.yaml:5: transports.nvlink.channels: '11': expected a whole number from 0 to 10");
  EXPECT_ERROR(
      read(required + "transports: {ib: {}}\n"), input_error,
      "d.yaml:5: transports.ib: unknown key; expected one of: nvlink, pcie, host-memory, network");
  EXPECT_ERROR(read(required).kernel("x"), input_error, "kernel: 'x': d has no measured kernels");
}

TEST(read_device, refuses_bad_tables) {
  const std::string shape = "pass: forward, mask: full, head_dim: 128, heads: 1, ";
  EXPECT_ERROR(
      read(with_table("{" + shape + "square: [8], tflops: [101]}")), input_error,
      "d.yaml:8: kernels[0].tables[0].tflops[0]: '101': expected at most the device's peak, "
      "100.0 TFLOP/s");
  EXPECT_ERROR(read(with_table("{" + shape + "square: [8], tflops: [0]}")), input_error,
               "d.yaml:8: kernels[0].tables[0].tflops[0]: '0': expected more than zero");
  EXPECT_ERROR(
      read(with_table("{" + shape + "square: [8, 8], tflops: [1, 2]}")), input_error,
      "d.yaml:8: kernels[0].tables[0].square[1]: '8': expected ascending sizes of at least 1");
  EXPECT_ERROR(read(with_table("{" + shape + "square: [], tflops: []}")), input_error,
               "d.yaml:8: kernels[0].tables[0].square: '[...]': expected at least one size");
  EXPECT_ERROR(
      read(with_table("{" + shape + "square: [8], tflops: [1, 2]}")), input_error,
      "d.yaml:8: kernels[0].tables[0].tflops: '[...]': expected 1 rates, one a size, got 2");
  EXPECT_ERROR(read(with_table("{" + shape + "rows: [8], cols: [8], tflops: [[1], [2]]}")),
               input_error,
               "d.yaml:8: kernels[0].tables[0].tflops: '[...]': expected 1 lists of rates, one a "
               "row size, got 2");
  EXPECT_ERROR(
      read(with_table("{" + shape + "square: [8], rows: [8], tflops: [1]}")), input_error,
      "d.yaml:8: kernels[0].tables[0].square: '[...]': expected either square, or rows and cols");
  EXPECT_ERROR(read(with_table("{pass: both}")), input_error,
               "d.yaml:8: kernels[0].tables[0].pass: 'both': expected one of: forward, backward");
  EXPECT_ERROR(read(required + "kernels: [{name: k, occupancy: all, tables: []}]\n"), input_error,
               "d.yaml:5: kernels[0].occupancy: 'all': expected one of: persistent, waves");
  EXPECT_ERROR(read(required + "kernels: [{name: k, tables: []}, {name: k, tables: []}]\n"),
               input_error,
               "d.yaml:5: kernels[1].name: 'k': expected a name that no other kernel has");
}

TEST(link_kind, names) {
  EXPECT_EQ(name_of(link_kind::pcie), "pcie");
  EXPECT_EQ(parse_link_kind("network"), link_kind::network);
  EXPECT_ERROR(parse_link_kind("wifi"), std::invalid_argument,
               "expected one of: nvlink, pcie, host-memory, network");
}

}  // namespace device_test
}  // namespace attnsim
