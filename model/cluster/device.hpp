// A device profile: what one accelerator can do, every number with its source in topologies/devices/NAME.yaml. Nothing
// about a device is in code. Peaks and sizes come from data sheets, kernel tables and fixed costs from measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/attention/attention.hpp"
#include "model/units.hpp"

namespace attnsim {

class config_node;

/// Where figures are from.
enum class basis { assumed, published, measured };

std::string_view name_of(basis);
basis parse_basis(std::string_view text);  ///< throws std::invalid_argument that lists the names

/// Measured rates of one kernel for one pass, mask and head dimension, over block shapes. Rates count the useful
/// operations only: 4 (forward) or 10 (backward) x visible pairs x heads x batch x head_dim, half the square under a
/// causal mask.
struct kernel_table {
  pass_kind pass = pass_kind::forward;
  mask_kind mask = mask_kind::full;
  std::int64_t head_dim = 128;
  std::vector<std::int64_t>
      heads;  ///< batch x query heads of the measurement: one, or one a size of a square table
  std::vector<double> rows;  ///< ascending; the same as cols for `square` tables
  std::vector<double> cols;  ///< ascending
  bool square = false;  ///< measured at rows = cols only: rates[i] belongs to rows[i] x cols[i]
  std::vector<flop_rate> rates;  ///< rows.size() x cols.size(), row-major, unless square

  double heads_of(std::size_t size) const {
    return static_cast<double>(heads.size() == 1 ? heads.front() : heads[size]);
  }
};

/// A kernel's time under a mask from its thread blocks, which all take a tile of rows (forward) or columns (backward) of one head and
/// loop over what it sees:
///   a block takes  block + token x length of its loop
///   a full mask    start + waves x a block, as many waves as whole rounds of tiles over all slots
///   a triangle     start + the longest block, or the mean of all tiles on a slot + uneven x a mean block, or where a slot takes its
///                  second tile when it begins the first (ahead), the longest of both
///   backward       and row for every row of every head: what is done before and after
/// cost/kernel.hpp says how other shapes are read.
struct kernel_law {
  pass_kind pass = pass_kind::forward;
  std::int64_t head_dim = 128;
  mask_kind mask = mask_kind::full;
  int group = 1;         ///< query heads of a K/V head
  int tile = 128;        ///< tokens
  int step = 1;          ///< tokens of a step of the loop, which takes whole ones
  int slots = 1;         ///< blocks at once on a multiprocessor
  bool grouped = false;  ///< a backward block loops over all query heads of its K/V head
  seconds start;
  seconds block;
  seconds token;
  seconds row;
  double uneven = 0.5;
  bool ahead = false;
  double diagonal = 0;  ///< part of a tile by which the loops of a triangle are longer
  /// A second law of the same calls, with a smaller tile: the kernel takes it where its busiest multiprocessor then computes less
  /// than this share of the rows (backward: columns) that it would by the other tile. 0: the law is the first or only one.
  double taken_below = 0;

  bool of_same_calls(const kernel_law& other) const {
    return std::tuple(pass, head_dim, mask, group) ==
           std::tuple(other.pass, other.head_dim, other.mask, other.group);
  }
};

/// How a kernel takes few query rows against many keys (flash-decoding): the query heads of a K/V head share its blocks, and keys
/// are split so that blocks fill the device; what the splits found is combined afterwards. cost/kernel.hpp has the time.
struct key_split {
  double efficiency =
      0;  ///< share of the memory bandwidth at which keys are read; 0: a kernel that splits no keys
  int rows = 64;    ///< of a block: query tokens times query heads of a K/V head
  int least = 128;  ///< keys of a split
  double filling =
      0.5;          ///< share of the multiprocessors that, with a block each, read at that rate
  seconds combine;  ///< to start combining
  double uncertainty = 0;  ///< as uncertainty_profile's compute, of such calls; 0: the device's
  std::string assumed;     ///< why these figures are what nobody measured; empty: measured

  bool present() const { return efficiency > 0; }
};

/// How a kernel's thread blocks get onto the multiprocessors, which decides what happens when communication starts beside
/// it; `occupancy` in files.
enum class block_scheduling {
  persistent,  ///< one block a multiprocessor for the whole kernel: a later kernel waits for its end
  waves,       ///< many short blocks: a later kernel of higher priority gets in at the next wave
};

/// What the host's thread takes to launch one call of a kernel, with its short kernels before and after; zero: nobody measured it.
struct call_launches {
  seconds forward;
  seconds backward;
  seconds few_rows;  ///< forward, by a kernel that splits keys
  seconds
      request;  ///< and for each request of such a call beyond the first, whose keys lie elsewhere
};

/// What a kernel's long calls would take at the highest clock, no limit being met; zero: nobody measured it.
struct kernel_power {
  watts forward;
  watts backward;

  bool present() const { return forward > watts() && backward > watts(); }
};

struct kernel_profile {
  std::string name;
  std::string source;
  attnsim::basis basis = attnsim::basis::assumed;
  block_scheduling scheduling = block_scheduling::waves;
  block_scheduling backward_scheduling = block_scheduling::waves;
  double boost = 1;  ///< its time in the tables over that after an idle start
  /// Forward, full mask, keys that are not whole tiles of 128: its time over that of keys that are. cuDNN's masks all of them then.
  double ragged = 1;
  /// Backward leaves out keys that no query sees, behind a triangle; false: it takes the whole rectangle, as cuDNN's does.
  bool skips_unseen = true;
  bool staircase = false;  ///< takes causal masks with different strides on both sides in one call
  key_split split;
  call_launches host;
  kernel_power power;            ///< its laws then have the highest clock
  std::vector<kernel_law> laws;  ///< a pass that has one is not read from the tables
  std::vector<kernel_table> tables;
  /// Of fp8, which has no laws; empty: a kernel without.
  struct fp8_rates {
    attnsim::basis basis = attnsim::basis::assumed;
    std::string source;
    std::vector<kernel_table> tables;
  } fp8;

  const std::vector<kernel_table>& tables_of(data_type type) const {
    return type == data_type::fp8 ? fp8.tables : tables;
  }
  bool has_rates(data_type type) const {
    return !tables_of(type).empty() || (type != data_type::fp8 && !laws.empty());
  }
};

/// How matrix products run, as cuBLASLt's do; `matmul` in files. cost/matmul.hpp has the time.
struct matmul_profile {
  double half =
      0.75;  ///< share of the peak that whole waves of tiles with long loops reach: bf16, fp16
  double fp8 = 0.65;
  int rows = 128;  ///< of a tile of the result
  int cols = 256;
  double depth =
      0;  ///< what begins and ends a wave, and a call, in numbers of bf16 of the tile's loop (cost/matmul.hpp)
  /// The rate after an idle start over the one that clocks settle at, and for how long: what is above the card's power limit.
  double boost = 1;
  seconds boost_time;
  std::string assumed = "no one's measurement";  ///< empty: published or measured
};

/// What the card's power limit makes of clocks; `power` in files. cost/clocks.hpp has the law.
struct power_profile {
  watts limit;     ///< over a tenth of a second; zero: nobody measured what follows
  watts idle;      ///< at the highest clock
  watts brake;     ///< that a kernel is never above
  watts products;  ///< large matrix products at the highest clock, no limit being met
  watts memory;    ///< operations that the memory bounds

  bool present() const { return limit > watts(); }
};

/// What a layer does to each element besides products, a kernel each; `elementwise` in files.
enum class elementwise_kind {
  plain,          ///< all that have no name here
  norm,           ///< residual and branch in, their sum and its norm out
  norm_gradient,  ///< with the sum over rows of its weights' gradients
  rotation,
  gate,
  gate_gradient,
  cast,  ///< of gradients: bf16 to fp32
};
inline constexpr int elementwise_kinds = 7;

std::string_view name_of(elementwise_kind);
elementwise_kind parse_elementwise(
    std::string_view text);  ///< throws std::invalid_argument that lists the names

/// One of them takes  start + bytes that it reads and writes / (efficiency x the memory's bandwidth). An eager step takes
/// the launch of a kernel + bytes / (eager x the memory's bandwidth).
struct elementwise_rate {
  double efficiency = 0;  ///< 0: nobody measured it, it is as a memory operation
  seconds start;
  double eager =
      0;  ///< efficiency of an eager framework's steps, each a kernel; 0: nobody measured it
};

/// What a message takes beyond its latency and its bytes at their rate, as pipelines fill and protocols change with the
/// size: as measured, linear between sizes, below the first as there, above the last as there. Copies share the points.
class message_ramp {
 public:
  struct point {
    double bytes = 0;
    seconds time;  ///< below zero where a message is faster than the rest of the law has it

    friend auto operator<=>(const point&, const point&) = default;
  };

  message_ramp() = default;  ///< nothing
  /// By ascending size.
  explicit message_ramp(std::vector<point> points)
      : points_(std::make_shared<const std::vector<point>>(std::move(points))) {}

  seconds of(double bytes) const;
  std::span<const point> points() const;

 private:
  std::shared_ptr<const std::vector<point>> points_;
};

/// How NCCL moves data over one kind of link. A message of n bytes takes
///   latency + ramp of n + n / rate,   rate = efficiency x link bandwidth
struct transport_profile {
  attnsim::basis basis = attnsim::basis::assumed;
  double efficiency = 1;          ///< share of the link bandwidth that a large send/recv reaches
  double one_way_efficiency = 1;  ///< the same where nothing comes the other way
  /// In an all-to-all a device serves all its peers at once; its bytes weigh on its own PCIe link peers^crowding times.
  double crowding = 0;
  double collective_efficiency = 1;  ///< the same for a large ring collective
  double all_reduce_efficiency = 1;  ///< the same for a large ring all-reduce
  /// The share that several flows at once reach together, where one alone does not fill the link (a communicator's channels
  /// or its host thread limit it); no more than the share of one: they divide that.
  double shared_efficiency = 0;
  double collective_shared_efficiency = 0;  ///< the same for ring collectives
  /// What one of two messages that a rank sends together (K and V, O and its log-sum-exp) gets of their rate: they divide
  /// the channels' warps, and a long one keeps its part when a short one has ended.
  double message_share = 1;
  /// TCP divides a link unevenly between the connections on it: standard deviation of the logarithm of a send/recv's share.
  /// Exchanges of a rank with several peers at once get in step with none of them; those with one peer lose nothing.
  double share_spread = 0;
  seconds latency;             ///< one send/recv or all-to-all, beyond the links' own latency
  seconds collective_latency;  ///< fixed cost of one other collective
  seconds step_latency;  ///< cost of one step of a ring collective, beyond the links' own latency
  message_ramp ramp;     ///< with a ramp for each of the efficiencies
  message_ramp one_way_ramp;
  message_ramp collective_ramp;
  message_ramp all_reduce_ramp;
  int channels = 0;  ///< multiprocessors that a send/recv or collective occupies while it runs
  /// What one channel carries at most each way; zero: no limit.
  bandwidth channel_bandwidth;
  /// Factor on the time of a kernel beside it; zero: the device's communication_slowdown.
  double slowdown = 0;
  double uncertainty = 0;  ///< as uncertainty_profile's, of this transport; zero: the device's
  /// Share by which exchanges of a rank with several peers at once may take longer than predicted: where ranks drift apart they
  /// wait for each other. Upwards in intervals, beside what `uncertainty` has; zero: no more than that.
  double several_peers = 0;
  /// What the first message takes longer that a run on idle devices sends: links and threads sleep.
  seconds wake;
  /// What a rank may have sent on one connection before its receiver has come to it: buffers at the receiver take it. Zero: a
  /// message waits for both.
  byte_count run_ahead;
  /// For ring collectives of two devices, where theirs are not those of many: null, as many.
  std::shared_ptr<const transport_profile> pair;

  const transport_profile& among(std::size_t members) const {
    return pair && members == 2 ? *pair : *this;
  }
  /// How many times the bytes of an all-to-all among so many weigh on a device's PCIe link.
  double crowded(std::size_t members) const {
    return std::pow(std::max(1.0, static_cast<double>(members) - 1), crowding);
  }
  /// The share of `link` that a send/recv reaches with its channels.
  double limited(double share, bandwidth link) const;
};

/// What the host takes to launch a run that begins on idle devices (schedule/run_start.hpp).
struct idle_start_profile {
  seconds launch;                ///< the host's time for the first local operation, until it runs
  seconds launch_communication;  ///< and for the first one that communicates
  seconds next;                  ///< for each local operation after the first, of one call
  seconds next_communication;
  seconds
      call;  ///< of these, for each further call that moves memory; kernels have their own (call_launches)
  seconds graph_launch;  ///< or for all of them as one CUDA graph
  /// What the device takes between operations, as runs are timed: each between two events of its own.
  seconds gap;                ///< before a local one
  seconds gap_communication;  ///< before one that communicates, in graphs: else its latency has it
  /// Kernels that have kept the device busy so long take it to its power limit: what they do after that takes so much longer.
  seconds sustained_after;
  double sustained = 0;
  double uncertainty = 0;  ///< relative half-width of a 90 % interval around what the host takes

  /// What kernels that take `time`, after others that took `before`, take in all.
  seconds sustained_time(seconds before, seconds time) const {
    if (sustained == 0) return time;
    const auto past = [this](seconds t) { return std::max(seconds(), t - sustained_after); };
    return time + sustained * (past(before + time) - past(before));
  }
};

/// `host_memory`: over PCIe where devices do not reach each other's memory: written to the host's and read from there.
/// Ascending: a path is driven as its last kind.
enum class link_kind { nvlink, pcie, host_memory, network };

std::string_view name_of(link_kind);
link_kind parse_link_kind(
    std::string_view text);  ///< throws std::invalid_argument that lists the names

/// "cudnn" of "cudnn-9.19": a kernel's name without its version, which is numbers with points between them.
std::string_view unversioned(std::string_view kernel);

/// Relative half-widths of a 90 % interval around what the profile predicts.
struct uncertainty_profile {
  double compute = 0;        ///< of kernel times
  double sustained = 0;      ///< and how much longer, at a card's power limit
  double memory = 0;         ///< of memory operations alone; zero: as compute
  double overlap = 0;        ///< of a kernel and communication together; zero: as compute
  double communication = 0;  ///< of exposed communication
};

struct device_profile {
  std::string name;
  std::string source;
  flop_rate peak_half;  ///< bf16 and fp16, dense
  flop_rate peak_fp32;
  flop_rate peak_fp8;  ///< zero: no such products
  matmul_profile matmul;
  power_profile power;
  byte_count memory;
  bandwidth memory_bandwidth;
  double memory_efficiency = 1;  ///< share of it that merge, convert and accumulate reach
  double delta_efficiency = 1;   ///< and delta, which sums over rows
  elementwise_rate elementwise[elementwise_kinds];  ///< by kind
  byte_count cache;                                 ///< zero: not told apart from the memory
  bandwidth cache_bandwidth;                        ///< what operations reach whose data fit in it
  double roofline_efficiency = 1;  ///< share of the peak assumed where no kernel table applies
  int multiprocessors = 0;
  seconds kernel_launch;  ///< gap that one kernel call costs on its stream
  /// Of a process, in hardware (CUDA_DEVICE_MAX_CONNECTIONS); its streams are dealt out to them in turn. An operation waits for
  /// all that were launched before it into the same one. 0: as many as streams.
  int queues = 0;
  double communication_slowdown =
      1;  ///< factor on a kernel's time while communication runs beside it
  transport_profile transports[4];  ///< by link_kind
  idle_start_profile idle_start;
  uncertainty_profile uncertainty;
  std::vector<kernel_profile> kernels;  ///< the first is the default

  flop_rate peak(data_type type) const {
    return type == data_type::fp32 ? peak_fp32 : type == data_type::fp8 ? peak_fp8 : peak_half;
  }
  const transport_profile& transport(link_kind kind) const {
    return transports[static_cast<int>(kind)];
  }
  /// Of calls that read and write so many bytes together and compute next to nothing, again and again: what exceeds the cache
  /// pushes out as much that would have been read from it, so that twice the excess comes from the memory.
  seconds memory_time(byte_count traffic, int calls = 1) const;
  /// Of calls that copy at a share of the memory's rate, for which the cache does nothing.
  seconds slow_copy_time(byte_count traffic, int calls, double share) const;
  /// Of such traffic, what comes from the memory.
  byte_count beyond_cache(byte_count traffic) const;
  /// Of an elementwise operation of a layer.
  seconds elementwise_time(elementwise_kind, byte_count traffic) const;
  /// Of one of its steps, where each is a kernel.
  seconds eager_time(elementwise_kind, byte_count traffic) const;
  /// The same of one that computes delta.
  seconds delta_time(byte_count traffic) const;
  /// Factor on the time of a kernel while communication over such links runs beside it.
  double slowdown(link_kind kind) const {
    return transport(kind).slowdown > 0 ? transport(kind).slowdown : communication_slowdown;
  }
  /// Of communication over such links.
  double communication_uncertainty(link_kind kind) const {
    return transport(kind).uncertainty > 0 ? transport(kind).uncertainty
                                           : uncertainty.communication;
  }
  /// The kernel called `name`, or the newest of its versions ("cudnn": cudnn-9.19 over cudnn-9.2), or when empty the first that
  /// has rates of the type, in fp8 else the first of 16 bits; nullptr when there is none (roofline only). Throws input_error that
  /// lists the names.
  const kernel_profile* kernel(const std::string& name, data_type = data_type::bf16) const;
  /// Likewise; nullptr where there is none of that name.
  const kernel_profile* find_kernel(const std::string& name) const;
};

/// Throws infeasible where the device has no products of the type.
void require_peak(const device_profile&, data_type);

/// Reads a profile; throws input_error for unknown keys, missing values, and rates above the peak. Shares and factors
/// default to 1, fixed costs to zero, the efficiencies to efficiency or collective_efficiency, ramps alike (one_way_ramp,
/// collective_ramp, all_reduce_ramp: the first two to ramp, the last to collective_ramp); what `pair` leaves out is as among
/// many; the rest of `peak`, `memory` and `multiprocessors` is required:
///
///   name: example
///   source: where the numbers are from
///   peak: {half: 989 TFLOP/s, fp32: 67 TFLOP/s, fp8: 1979 TFLOP/s}
///   matmul: {half: 0.8, fp8: 0.7, tile: [128, 256], depth: 256, boost: 1.1, boost_time: 30 ms, assumed: what nobody measured}
///   power: {limit: 700 W, idle: 130 W, brake: 1000 W, products: 1500 W, memory: 500 W}
///   elementwise: {norm: {efficiency: 0.7, start: 3 us, eager: 0.5}, gate: {efficiency: 0.8}}
///   memory: {capacity: 80 GiB, bandwidth: 3.35 TB/s, efficiency: 0.9}
///   multiprocessors: 132
///   roofline_efficiency: 0.6
///   kernel_launch: 4 us
///   queues: 8
///   communication_slowdown: 1.1
///   idle_start: {launch: 6 us, launch_communication: 60 us, next: 5 us, next_communication: 15 us, call: 4 us, graph_launch: 20 us,
///                gap: 5 us, gap_communication: 3 us, sustained_after: 10 ms, sustained: 0.1, uncertainty: 0.5}     # next: as launch; the others zero
///   uncertainty: {compute: 0.1, communication: 0.25, sustained: 0.08, memory: 0.2, overlap: 0.15}
///   transports:
///     nvlink: {basis: measured, efficiency: 0.9, collective_efficiency: 0.8, shared_efficiency: 0.95, share_spread: 0.2, latency: 5 us, collective_latency: 10 us, step_latency: 1 us,
///              ramp: {bytes: [1024, 1048576], us: [0, 20]}, channels: 16, channel_bandwidth: 20 GB/s, slowdown: 1.2, uncertainty: 0.1,
///              several_peers: 0.2, wake: 18 us, run_ahead: 4 MiB, pair: {collective_efficiency: 0.7, collective_ramp: {bytes: [1024, 1048576], us: [0, 10]}}}
///     host-memory: {efficiency: 0.4, crowding: 1}     # as pcie where there is none
///   kernels:
///   - name: fa3
///     source: where the table is from
///     basis: published                 # or measured, assumed
///     occupancy: persistent            # or {forward: persistent, backward: waves}
///     boost: 1.05
///     ragged: 1.1
///     skips_unseen: true
///     staircase: false
///     key_split: {efficiency: 0.9, rows: 64, least: 128, filling: 0.5, combine: 2 us, uncertainty: 0.2, assumed: nobody measured it}
///     host: {forward: 6 us, backward: 16 us, few_rows: 10 us, request: 1 us}
///     power: {forward: 800 W, backward: 700 W}
///     laws:
///     - {pass: forward, head_dim: 128, mask: causal, tile: 128, step: 128, slots: 1, grouped: false, start: 3 us, block: 3 us, token: 12.6 ns,
///        row: 0 ns, uneven: 0.5, ahead: true, diagonal: 0.5}
///     - {pass: forward, head_dim: 128, mask: causal, tile: 64, taken_below: 0.9, slots: 1, block: 2 us, token: 6.6 ns}
///     tables:
///     - {pass: forward, mask: full, head_dim: 128, heads: 32, square: [1024, 2048], tflops: [400, 500]}
///     - {pass: forward, mask: causal, head_dim: 128, heads: [64, 32], square: [1024, 2048], tflops: [300, 450]}
///     - {pass: backward, mask: full, head_dim: 128, heads: 32, rows: [512, 1024], cols: [512], tflops: [[300], [350]]}
///     fp8: {basis: published, source: where they are from, tables: [...]}     # likewise, of fp8
device_profile read_device(const config_node&);

}  // namespace attnsim
