// FlashAttention's tables. The device profiles hold them, so each size is predicted without it: from a profile that keeps
// only every second size, those of the other half.
#include "model/cost/kernel.hpp"

#include <fmt/format.h>

#include "ask/predict.hpp"
#include "model/config.hpp"
#include "model/topology_files.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

constexpr double smallest_size = 512;  ///< of the tables; each next is twice as large

/// Sizes 512, 2048, 8192 are even, the others odd.
bool is_odd(double size) {
  bool odd = false;
  for (double s = smallest_size; s < size; s *= 2) odd = !odd;
  return odd;
}

/// The profile without the sizes whose oddness is `left_out`.
kernel_profile without(kernel_profile kernel, bool left_out) {
  for (auto& table : kernel.tables) {
    std::vector<double> sizes;
    std::vector<std::int64_t> heads;
    std::vector<flop_rate> rates;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      if (is_odd(table.rows[i]) == left_out) continue;
      sizes.push_back(table.rows[i]);
      heads.push_back(static_cast<std::int64_t>(table.heads_of(i)));
      rates.push_back(table.rates[i]);
    }
    table.rows = table.cols = sizes;
    table.heads = heads;
    table.rates = rates;
  }
  return kernel;
}

double predicted_tflops(const device_profile& device, const published_row& row) {
  const auto size = row.integer("sequence");
  const auto kernel =
      without(*device.kernel(row.text("kernel")), is_odd(static_cast<double>(size)));
  kernel_call call{.batch = row.integer("batch"),
                   .heads = row.integer("heads"),
                   .kv_heads = row.integer("heads"),
                   .head_dim = row.integer("head_dim"),
                   .rows = size,
                   .cols = size,
                   .dtype = data_type::fp16};
  const bool causal = row.text("mask") == "causal";
  call.pairs = causal ? size * (size + 1) / 2 : size * size;
  const double half_if_causal = causal ? 0.5 : 1;
  flop_count work;
  seconds time;
  for (const auto pass : passes_of(parse_pass(row.text("pass")))) {
    call.pass = pass;
    time += kernel_time(device, &kernel, call);
    work += flop_count(operations_a_pair(pass, call.head_dim) * half_if_causal *
                       static_cast<double>(size * size * call.heads * call.batch));
  }
  return (work / time).value() / 1e12;
}

}  // namespace

result flash_attention() {
  result r{.unit = "TFLOP/s"};
  std::map<std::string, device_profile> devices;
  for (const auto& row : published("flash-attention")) {
    const auto name = row.text("device");
    if (!devices.contains(name))
      devices[name] = read_device(config_node::load(find_topology_file("devices", name)));
    r.points.push_back(
        {fmt::format("{} {} {} {}", name, row.text("kernel"), row.text("pass"), row.text("mask")),
         fmt::format("{} tokens, head dimension {}", row.text("sequence"), row.text("head_dim")),
         row.number("tflops"), predicted_tflops(devices[name], row)});
  }
  r.assumptions = {
      "the profiles' kernel tables are these figures: each is predicted from every second other "
      "size of its table",
      "the forward share of both passes on A100 is that on H100, where both are published; "
      "backward at head dimension "
      "128 on H100 is from other charts (device files)"};
  return r;
}

}  // namespace attnsim::reproduce
