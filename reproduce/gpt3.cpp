#include "reproduce/gpt3.hpp"

#include "model/attention/model_shapes.hpp"

namespace attnsim::reproduce {
namespace {

seconds dense_layers(const device_profile& device, const attention& a, int ranks) {
  const double h = static_cast<double>(a.heads * a.head_dim);
  const double tokens = static_cast<double>(a.sequence * a.batch) / ranks;
  return flop_count(6 * 12 * h * h * tokens) /
         flop_rate(device.peak(a.dtype).value() * dense_efficiency);
}

}  // namespace

seconds layer_step(const cluster& c, const attention& a, const strategy& s, int ranks) {
  return predict(c, a, s, ranks, pass_kind::both).time + dense_layers(c.device, a, ranks);
}

attention attention_of(const std::string& model, std::int64_t sequence) {
  attention a{.sequence = sequence};
  use_model(a, model);
  return a;
}

strategy paper_strategy(const std::string& schedule) {
  strategy s{.schedule = schedule, .tokens = token_layout::striped};
  if (schedule != "ring") s.order = kv_order::transposed;
  return s;
}

}  // namespace attnsim::reproduce
