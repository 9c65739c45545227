#include "model/cluster/host.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "model/cluster/cluster.hpp"
#include "tests/expect_error.hpp"

namespace attnsim {
namespace host_test {

const std::string times =
    "attention: 1 us\nattention_backward: 2 us\nmerge: 3 us\nadd: 4 us\ncopy: 5 us\n"
    "exchange: 6 us\nexchanged_tensor: 7 us\nall_gather: 8 us\nreduce_scatter: 9 us\n"
    "all_to_all: 10 us\n";

host_profile read(const std::string& text) {
  return read_host(config_node::parse_text(text, "h.yaml"));
}

TEST(read_host, a_time_a_call) {
  const auto host =
      read("name: h\nsource: s\nbasis: published\nslowdown: 2\nuncertainty: 0.5\n" + times);
  EXPECT_EQ(host.name, "h");
  EXPECT_EQ(host.source, "s");
  EXPECT_EQ(host.basis, basis::published);
  EXPECT_EQ(host.slowdown, 2);
  EXPECT_EQ(host.uncertainty, 0.5);
  EXPECT_EQ(host.attention, parse<seconds>("1 us"));
  EXPECT_EQ(host.attention_backward, parse<seconds>("2 us"));
  EXPECT_EQ(host.merge, parse<seconds>("3 us"));
  EXPECT_EQ(host.add, parse<seconds>("4 us"));
  EXPECT_EQ(host.copy, parse<seconds>("5 us"));
  EXPECT_EQ(host.exchange, parse<seconds>("6 us"));
  EXPECT_EQ(host.exchanged_tensor, parse<seconds>("7 us"));
  EXPECT_EQ(host.all_gather, parse<seconds>("8 us"));
  EXPECT_EQ(host.reduce_scatter, parse<seconds>("9 us"));
  EXPECT_EQ(host.all_to_all, parse<seconds>("10 us"));
}

TEST(read_host, refuses) {
  EXPECT_ERROR(read("name: h\n"), input_error, "h.yaml:1: attention: missing");
  EXPECT_ERROR(read("name: ''\n" + times), input_error, "h.yaml:1: name: '': expected a name");
  EXPECT_ERROR(read("name: h\nslowdown: 0\n" + times), input_error,
               "h.yaml:2: slowdown: '0': expected above 0");
  EXPECT_ERROR(read("name: h\nuncertainty: -1\n" + times), input_error,
               "h.yaml:2: uncertainty: '-1': expected at least 0");
  EXPECT_EQ(read("name: h\n" + times).basis, basis::assumed);
  EXPECT_ERROR(read("name: h\nbasis: guess\n" + times), input_error,
               "h.yaml:2: basis: 'guess': expected one of: assumed, published, measured");
  EXPECT_ERROR(
      read("name: h\nsend: 1 us\n" + times), input_error,
      "h.yaml:2: send: unknown key; expected one of: name, source, basis, attention, "
      "attention_backward, merge, add, copy, cast, exchange, exchanged_tensor, all_gather, "
      "reduce_scatter, all_to_all, slowdown, uncertainty");
}

TEST(read_host, of_a_cluster) {
  const std::string c = "name: c\ndevice: ideal\nnodes: 1\ndevices_per_node: 1\n";
  const auto read_with = [](const std::string& text, const cluster_overrides& o) {
    return read_cluster(config_node::parse_text(text, "c.yaml"), o).host;
  };
  EXPECT_EQ(read_with(c, {}).name, "");
  EXPECT_EQ(read_with(c + "host: pytorch\n", {}).name, "pytorch");
  const auto set = read_with(c, {.host = "pytorch", .set = {{"host.copy", "1 us"}}});
  EXPECT_EQ(set.name, "pytorch");
  EXPECT_EQ(set.copy, parse<seconds>("1 us"));
  EXPECT_ERROR(read_with(c, {.host = "no-such"}), input_error,
               "host: 'no-such': expected a file or one of: pytorch");
}

/// Calls that were timed one by one, in a file of samples (tests/gpu/pytorch.py).
TEST(shipped_hosts, pytorch_has_the_medians_of_what_was_measured) {
  const auto measured =
      config_node::load("reproduce/measured/h200/calls_pytorch.json").at("seconds").at("host");
  const auto median = [&](const char* call) {
    std::vector<double> samples;
    for (const auto& s : measured.at(call).items()) samples.push_back(s.as<double>());
    std::sort(samples.begin(), samples.end());
    return samples.at(samples.size() / 2);
  };
  const auto host = read_cluster("dgx-h100", {.host = "pytorch"}).host;
  const auto expect = [](seconds time, double measured) {
    EXPECT_NEAR(time.value() / measured, 1, 0.005) << measured;
  };
  expect(host.attention, median("attention"));
  expect(host.attention_backward, median("attention_backward"));
  expect(host.merge, median("merge"));
  expect(host.add, median("elementwise"));
  expect(host.copy, median("copy"));
  expect(host.exchange + host.exchanged_tensor, median("exchange_of_1"));
  expect(host.exchange + 2 * host.exchanged_tensor, median("exchange_of_2"));
  expect(host.all_gather, median("all_gather"));
  expect(host.reduce_scatter, median("reduce_scatter"));
  expect(host.all_to_all + host.copy, median("all_to_all"));
}

}  // namespace host_test
}  // namespace attnsim
