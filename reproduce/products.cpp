// Matrix products and a layer on one H200 with PyTorch (tests/gpu/products.py). The profile's two shares and depth are fitted to
// half of the products, and to those of cuBLASLt on another; the other half and the layers are predicted. Products of less than
// 60 us are left out: the host's time.
#include <fmt/format.h>

#include "ask/step.hpp"
#include "model/cost/matmul.hpp"
#include "reproduce/published.hpp"
#include "reproduce/studies.hpp"

namespace attnsim::reproduce {
namespace {

config_node measured_products() {
  return config_node::load(find_published("products-h200.json"));
}

void add_products(result& r, const config_node& measured, const device_profile& device) {
  constexpr double host_bound = 60e-6;
  for (const auto& one : measured.at("products").items()) {
    const double time = one.get<double>("time_s");
    if (time < host_bound) continue;
    const auto type = one.get<std::string>("type");
    const bool fitted = one.get<std::string>("part") == "fit";
    const auto size = [&](const char* key) { return static_cast<double>(one.get_integer(key, 1)); };
    const matrix_product p{size("rows"), size("cols"), size("inner")};
    const auto predicted =
        product_time(device, p, type == "fp8" ? product_type::fp8 : product_type::half);
    r.points.push_back({fmt::format("{} products{}", type, fitted ? " (fit)" : ""),
                        fmt::format("{} x {} x {}", p.rows, p.cols, p.inner), time,
                        predicted.value(), fitted});
  }
}

void add_layers(result& r, const config_node& measured) {
  const auto c = read_cluster("dgx-h200", {.nodes = 1});
  for (const auto& one : measured.at("layers").items()) {
    const bool compiled = one.get<bool>("compiled");
    ask::step_question q;
    q.model = one.get<std::string>("model");
    set(q, "ranks", "1");
    set(q, "seq", std::to_string(one.get_integer("tokens", 1)));
    set(q, "kernel", "sdpa");
    q.eager = !compiled;
    q.fused_norms = true;
    const auto t = read_transformer(q.model);
    ask::known_parts known(c);
    const auto figure =
        fmt::format("{}, {} tokens{}", q.model, *q.base.sequence, compiled ? ", compiled" : "");
    const auto layer = ask::layer_of(q, c, t, known);
    r.points.push_back(
        {"layer forward", figure, one.get<double>("forward_s"), ask::sum_of(layer.forward)});
    r.points.push_back(
        {"layer forward and backward", figure, one.get<double>("both_s"), layer.time.value()});
  }
}

}  // namespace

result products() {
  const auto measured = measured_products();
  result r{.unit = "s"};
  add_products(r, measured, read_device_file("h200-sxm5"));
  add_layers(r, measured);
  r.fitted = {
      "highest rate of products: 0.717 of the bf16 peak, 0.70 of the fp8 peak",
      "a wave's beginning and end: as long as 48 bf16 numbers of its loop; this half alone "
      "would have 0, 120 products by cuBLASLt on another card 80 (measured/h200-layers-kinds)"};
  r.assumptions = {"PyTorch 2.11, cuBLASLt of CUDA 13.0, random data, clocks settled",
                   "attention of the layers at the published rates of PyTorch's on H100 (sdpa)"};
  return r;
}

}  // namespace attnsim::reproduce
