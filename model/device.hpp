// A device profile: what one accelerator can do, every number with its source in topologies/devices/NAME.yaml. Nothing
// about a device is in code. Peaks and sizes come from data sheets, kernel tables and fixed costs from measurements.
#pragma once

#include <string>
#include <vector>

#include "model/attention.hpp"
#include "model/units.hpp"

namespace attnsim {

class config_node;

/// Measured rates of one kernel for one pass, mask and head dimension, over block shapes. Rates count the useful
/// operations only: 4 (forward) or 10 (backward) x visible pairs x heads x batch x head_dim, half the square under a
/// causal mask.
struct kernel_table {
  pass_kind pass = pass_kind::forward;
  mask_kind mask = mask_kind::full;
  std::int64_t head_dim = 128;
  std::int64_t heads = 0;    ///< batch x query heads of the measurement
  std::vector<double> rows;  ///< ascending; the same as cols for `square` tables
  std::vector<double> cols;  ///< ascending
  bool square = false;  ///< measured at rows = cols only: rates[i] belongs to rows[i] x cols[i]
  std::vector<flop_rate> rates;  ///< rows.size() x cols.size(), row-major, unless square
};

/// How a kernel occupies the multiprocessors, which decides what happens when communication starts beside it.
enum class occupancy_kind {
  persistent,  ///< one block a multiprocessor for the whole kernel: a later kernel waits for its end
  waves,       ///< many short blocks: a later kernel of higher priority gets in at the next wave
};

struct kernel_profile {
  std::string name;
  std::string source;
  occupancy_kind occupancy = occupancy_kind::waves;
  bool staircase = false;  ///< takes causal masks with different strides on both sides in one call
  std::vector<kernel_table> tables;
};

/// How NCCL moves data over one kind of link. A message of n bytes takes latency + n / (efficiency x link bandwidth).
struct transport_profile {
  double efficiency = 1;             ///< share of the link bandwidth that a large send/recv reaches
  double collective_efficiency = 1;  ///< the same for a large ring collective
  seconds latency;                   ///< one send/recv, beyond the links' own latency
  seconds collective_latency;        ///< fixed cost of one collective
  seconds step_latency;  ///< cost of one step of a ring collective, beyond the links' own latency
  int channels = 0;      ///< multiprocessors that a send/recv or collective occupies while it runs
};

enum class link_kind { nvlink, pcie, network };

std::string_view name_of(link_kind);
link_kind parse_link_kind(
    std::string_view text);  ///< throws std::invalid_argument that lists the names

/// Relative half-widths of a 90 % interval around what the profile predicts.
struct uncertainty_profile {
  double compute = 0;        ///< of kernel times
  double communication = 0;  ///< of exposed communication
};

struct device_profile {
  std::string name;
  std::string source;
  flop_rate peak_half;  ///< bf16 and fp16, dense
  flop_rate peak_fp32;
  byte_count memory;
  bandwidth memory_bandwidth;
  double memory_efficiency = 1;    ///< share of it that merge, convert and accumulate reach
  double roofline_efficiency = 1;  ///< share of the peak assumed where no kernel table applies
  int multiprocessors = 0;
  seconds kernel_launch;  ///< gap that one kernel call costs on its stream
  double communication_slowdown =
      1;  ///< factor on a kernel's time while communication runs beside it
  transport_profile transports[3];  ///< by link_kind
  uncertainty_profile uncertainty;
  std::vector<kernel_profile> kernels;  ///< the first is the default

  flop_rate peak(data_type type) const { return type == data_type::fp32 ? peak_fp32 : peak_half; }
  const transport_profile& transport(link_kind kind) const {
    return transports[static_cast<int>(kind)];
  }
  /// The kernel called `name`, or the first when empty; nullptr when there are no tables (roofline only). Throws
  /// input_error that lists the names.
  const kernel_profile* kernel(const std::string& name) const;
};

/// Reads a profile; throws input_error for unknown keys, missing values, and rates above the peak. Shares and factors
/// default to 1, fixed costs to zero, collective_efficiency to efficiency; the rest of `peak`, `memory` and
/// `multiprocessors` is required:
///
///   name: example
///   source: where the numbers are from
///   peak: {half: 989 TFLOP/s, fp32: 67 TFLOP/s}
///   memory: {capacity: 80 GiB, bandwidth: 3.35 TB/s, efficiency: 0.9}
///   multiprocessors: 132
///   roofline_efficiency: 0.6
///   kernel_launch: 4 us
///   communication_slowdown: 1.1
///   uncertainty: {compute: 0.1, communication: 0.25}
///   transports:
///     nvlink: {efficiency: 0.9, collective_efficiency: 0.8, latency: 5 us, collective_latency: 10 us, step_latency: 1 us, channels: 16}
///   kernels:
///   - name: fa3
///     source: where the table is from
///     occupancy: persistent
///     staircase: false
///     tables:
///     - {pass: forward, mask: full, head_dim: 128, heads: 32, square: [1024, 2048], tflops: [400, 500]}
///     - {pass: backward, mask: full, head_dim: 128, heads: 32, rows: [512, 1024], cols: [512], tflops: [[300], [350]]}
device_profile read_device(const config_node&);

}  // namespace attnsim
