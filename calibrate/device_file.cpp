#include "calibrate/device_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attnsim {
namespace {

std::string text(seconds t) {
  return fmt::format("{:.4g} us", t.value() * 1e6);
}
std::string text(bandwidth b) {
  return fmt::format("{:.4g} GB/s", b.value() / 1e9);
}
std::string text(flop_rate r) {
  return fmt::format("{:.4g} TFLOP/s", r.value() / 1e12);
}
std::string text(watts p) {
  return fmt::format("{:.4g} W", p.value());
}
std::string quoted(const std::string& s) {
  std::string result = "'";
  for (const char c : s) {
    result += c == '\n' ? ' ' : c;
    if (c == '\'') result += c;
  }
  return result + "'";
}
std::string_view text(block_scheduling kind) {
  return kind == block_scheduling::persistent ? "persistent" : "waves";
}

std::string sizes(const std::vector<double>& values) {
  return fmt::format("[{:.0f}]", fmt::join(values, ", "));
}

std::string tflops(const flop_rate* begin, std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(begin[i].value() / 1e12);
  return fmt::format("[{:.4g}]", fmt::join(values, ", "));
}

std::string text(const kernel_table& t) {
  const auto heads = t.heads.size() == 1 ? std::to_string(t.heads.front())
                                         : fmt::format("[{}]", fmt::join(t.heads, ", "));
  std::string result = fmt::format(
      "      - {{pass: {}, mask: {}, head_dim: {}, heads: {},\n         ",
      t.pass == pass_kind::forward ? "forward" : "backward", name_of(t.mask), t.head_dim, heads);
  if (t.square) {
    return result + fmt::format("square: {},\n         tflops: {}}}\n", sizes(t.rows),
                                tflops(t.rates.data(), t.rates.size()));
  }
  result += fmt::format("rows: {}, cols: {},\n         tflops: [", sizes(t.rows), sizes(t.cols));
  for (std::size_t row = 0; row < t.rows.size(); ++row) {
    if (row > 0) result += ",\n                  ";
    result += tflops(t.rates.data() + row * t.cols.size(), t.cols.size());
  }
  return result + "]}\n";
}

std::string text(const kernel_law& l) {
  const auto ns = [](seconds t) { return fmt::format("{:.4g} ns", t.value() * 1e9); };
  return fmt::format(
      "      - {{pass: {}, head_dim: {}, mask: {}, group: {}, tile: {}, {}{}slots: {}, grouped: "
      "{},\n"
      "         start: {}, block: {}, token: {}, row: {}, uneven: {}, {}diagonal: {}}}\n",
      l.pass == pass_kind::forward ? "forward" : "backward", l.head_dim, name_of(l.mask), l.group,
      l.tile, l.step > 1 ? fmt::format("step: {}, ", l.step) : "",
      l.taken_below > 0 ? fmt::format("taken_below: {:.4g}, ", l.taken_below) : "", l.slots,
      l.grouped, text(l.start), text(l.block), ns(l.token), ns(l.row), l.uneven,
      l.ahead ? "ahead: true, " : "", l.diagonal);
}

std::string text(const key_split& s) {
  return fmt::format(
      "{{efficiency: {:.4g}, rows: {}, least: {}, filling: {:.4g}, combine: {}{}{}}}", s.efficiency,
      s.rows, s.least, s.filling, text(s.combine),
      s.uncertainty > 0 ? fmt::format(", uncertainty: {:.3g}", s.uncertainty) : "",
      s.assumed.empty() ? "" : ",\n                assumed: " + quoted(s.assumed));
}

std::string text(const call_launches& c) {
  return fmt::format("{{forward: {}, backward: {}, few_rows: {}, request: {}}}", text(c.forward),
                     text(c.backward), text(c.few_rows), text(c.request));
}

std::string text(const kernel_profile& k) {
  std::string result = fmt::format(
      "  - name: {}\n    source: {}\n    basis: {}\n    occupancy: {{forward: {}, backward: {}}}\n",
      k.name, quoted(k.source), name_of(k.basis), text(k.scheduling), text(k.backward_scheduling));
  if (k.boost != 1) result += fmt::format("    boost: {:.4g}\n", k.boost);
  if (k.ragged != 1) result += fmt::format("    ragged: {:.4g}\n", k.ragged);
  if (!k.skips_unseen) result += "    skips_unseen: false\n";
  if (k.staircase) result += "    staircase: true\n";
  if (k.split.present()) result += fmt::format("    key_split: {}\n", text(k.split));
  if (k.host.forward > seconds()) result += fmt::format("    host: {}\n", text(k.host));
  if (k.power.present())
    result += fmt::format("    power: {{forward: {}, backward: {}}}\n", text(k.power.forward),
                          text(k.power.backward));
  if (!k.laws.empty()) result += "    laws:\n";
  for (const auto& law : k.laws) result += text(law);
  if (!k.tables.empty()) result += "    tables:\n";
  for (const auto& t : k.tables) result += text(t);
  if (k.fp8.tables.empty()) return result;
  result += fmt::format("    fp8:\n      source: {}\n      basis: {}\n      tables:\n",
                        quoted(k.fp8.source), name_of(k.fp8.basis));
  for (const auto& t : k.fp8.tables) result += "  " + text(t);
  return result;
}

std::string ramp_text(std::string_view name, const message_ramp& r) {
  if (r.points().empty()) return "";
  std::vector<double> bytes, us;
  for (const auto& p : r.points()) {
    bytes.push_back(p.bytes);
    us.push_back(p.time.value() * 1e6);
  }
  return fmt::format(",\n      {}: {{bytes: [{:.0f}],\n        us: [{:.4g}]}}", name,
                     fmt::join(bytes, ", "), fmt::join(us, ", "));
}

std::string pair_text(const transport_profile& t) {
  return fmt::format(
             "{{basis: {}, collective_efficiency: {:.4g}, all_reduce_efficiency: {:.4g}, "
             "collective_latency: "
             "{}",
             name_of(t.basis), t.collective_efficiency, t.all_reduce_efficiency,
             text(t.collective_latency)) +
         ramp_text("collective_ramp", t.collective_ramp) +
         ramp_text("all_reduce_ramp", t.all_reduce_ramp) + "}";
}

std::string text(const transport_profile& t) {
  std::string result = fmt::format(
      "{{basis: {}, efficiency: {:.4g}, one_way_efficiency: {:.4g}, collective_efficiency: "
      "{:.4g},\n"
      "      all_reduce_efficiency: {:.4g}, latency: {}, collective_latency: {}, step_latency: "
      "{}, channels: {}",
      name_of(t.basis), t.efficiency, t.one_way_efficiency, t.collective_efficiency,
      t.all_reduce_efficiency, text(t.latency), text(t.collective_latency), text(t.step_latency),
      t.channels);
  if (t.crowding > 0) result += fmt::format(", crowding: {:.4g}", t.crowding);
  if (t.shared_efficiency > 0)
    result += fmt::format(", shared_efficiency: {:.4g}", t.shared_efficiency);
  if (t.collective_shared_efficiency > 0)
    result += fmt::format(", collective_shared_efficiency: {:.4g}", t.collective_shared_efficiency);
  if (t.message_share < 1) result += fmt::format(", message_share: {:.4g}", t.message_share);
  if (t.share_spread > 0) result += fmt::format(", share_spread: {:.4g}", t.share_spread);
  if (t.channel_bandwidth > bandwidth())
    result += fmt::format(", channel_bandwidth: {}", text(t.channel_bandwidth));
  if (t.slowdown > 0) result += fmt::format(", slowdown: {:.4g}", t.slowdown);
  if (t.uncertainty > 0) result += fmt::format(", uncertainty: {:.3g}", t.uncertainty);
  if (t.several_peers > 0) result += fmt::format(", several_peers: {:.3g}", t.several_peers);
  if (t.wake > seconds()) result += fmt::format(", wake: {}", text(t.wake));
  if (t.run_ahead > byte_count()) result += fmt::format(", run_ahead: {} B", t.run_ahead.value());
  result += ramp_text("ramp", t.ramp);
  result += ramp_text("one_way_ramp", t.one_way_ramp);
  result += ramp_text("collective_ramp", t.collective_ramp);
  result += ramp_text("all_reduce_ramp", t.all_reduce_ramp);
  if (t.pair) result += fmt::format(",\n      pair: {}", pair_text(*t.pair));
  return result + "}";
}

/// Empty where none was measured.
std::string elementwise_text(const device_profile& d) {
  std::string result;
  for (int i = 0; i < elementwise_kinds; ++i) {
    const auto& rate = d.elementwise[i];
    if (rate.efficiency == 0) continue;
    result +=
        fmt::format("{}{}: {{efficiency: {:.4g}, start: {}{}}}",
                    result.empty() ? "elementwise: {" : ",\n              ",
                    name_of(static_cast<elementwise_kind>(i)), rate.efficiency, text(rate.start),
                    rate.eager > 0 ? fmt::format(", eager: {:.4g}", rate.eager) : "");
  }
  return result.empty() ? result : result + "}\n";
}

}  // namespace

std::string to_yaml(const device_profile& d, const std::vector<std::string>& notes) {
  std::string result;
  for (const auto& note : notes) result += fmt::format("# {}\n", note);
  result += fmt::format("name: {}\nsource: {}\n", d.name, quoted(d.source));
  result += fmt::format("peak: {{half: {}, fp32: {}", text(d.peak_half), text(d.peak_fp32));
  if (d.peak_fp8 > flop_rate()) result += fmt::format(", fp8: {}", text(d.peak_fp8));
  result +=
      fmt::format("}}\nmatmul: {{half: {:.4g}, fp8: {:.4g}, tile: [{}, {}], depth: {:.4g}{}{}}}\n",
                  d.matmul.half, d.matmul.fp8, d.matmul.rows, d.matmul.cols, d.matmul.depth,
                  d.matmul.boost == 1 ? ""
                                      : fmt::format(", boost: {:.4g}, boost_time: {}",
                                                    d.matmul.boost, text(d.matmul.boost_time)),
                  d.matmul.assumed.empty() ? "" : ", assumed: " + quoted(d.matmul.assumed));
  if (d.power.present())
    result += fmt::format("power: {{limit: {}, idle: {}, brake: {}, products: {}, memory: {}}}\n",
                          text(d.power.limit), text(d.power.idle), text(d.power.brake),
                          text(d.power.products), text(d.power.memory));
  result += elementwise_text(d);
  result += fmt::format("memory: {{capacity: {} B, bandwidth: {}, efficiency: {:.4g}",
                        d.memory.value(), text(d.memory_bandwidth), d.memory_efficiency);
  if (d.delta_efficiency != d.memory_efficiency)
    result += fmt::format(", delta_efficiency: {:.4g}", d.delta_efficiency);
  if (d.cache > byte_count())
    result +=
        fmt::format(", cache: {} B, cache_bandwidth: {}", d.cache.value(), text(d.cache_bandwidth));
  result += "}\n";
  result += fmt::format(
      "multiprocessors: {}\nroofline_efficiency: {:.4g}\nkernel_launch: {}\n"
      "communication_slowdown: {:.4g}\nidle_start: {{launch: {}, launch_communication: {}, next: "
      "{}, "
      "next_communication: {}, call: {}, graph_launch: {}, gap: {}, gap_communication: {}{}{}}}\n",
      d.multiprocessors, d.roofline_efficiency, text(d.kernel_launch), d.communication_slowdown,
      text(d.idle_start.launch), text(d.idle_start.launch_communication), text(d.idle_start.next),
      text(d.idle_start.next_communication), text(d.idle_start.call),
      text(d.idle_start.graph_launch), text(d.idle_start.gap), text(d.idle_start.gap_communication),
      d.idle_start.sustained > 0
          ? fmt::format(", sustained_after: {}, sustained: {:.4g}",
                        text(d.idle_start.sustained_after), d.idle_start.sustained)
          : "",
      d.idle_start.uncertainty > 0 ? fmt::format(", uncertainty: {:.3g}", d.idle_start.uncertainty)
                                   : "");
  if (d.queues > 0) result += fmt::format("queues: {}\n", d.queues);
  if (d.uncertainty.compute > 0 && d.uncertainty.communication > 0) {
    const auto memory =
        d.uncertainty.memory > 0 ? fmt::format("memory: {:.3g}, ", d.uncertainty.memory) : "";
    const auto overlap =
        d.uncertainty.overlap > 0 ? fmt::format("overlap: {:.3g}, ", d.uncertainty.overlap) : "";
    const auto sustained = d.uncertainty.sustained > 0
                               ? fmt::format("sustained: {:.3g}, ", d.uncertainty.sustained)
                               : "";
    result +=
        fmt::format("uncertainty: {{compute: {:.3g}, {}{}{}communication: {:.3g}}}\n",
                    d.uncertainty.compute, sustained, memory, overlap, d.uncertainty.communication);
  }
  result += "transports:\n";
  for (const auto kind :
       {link_kind::nvlink, link_kind::pcie, link_kind::host_memory, link_kind::network})
    result += fmt::format("  {}:\n    {}\n", name_of(kind), text(d.transport(kind)));
  if (!d.kernels.empty()) result += "kernels:\n";
  for (const auto& k : d.kernels) result += text(k);
  return result;
}

}  // namespace attnsim
