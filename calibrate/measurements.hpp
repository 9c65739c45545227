// What `attnsim measure` writes and `attnsim calibrate` reads: points (what was timed) with their samples.
//
//   {"schema": "attnsim.measurements.2",
//    "environment": {"card": "NVIDIA H100 80GB HBM3", "nccl": "2.28.9", ...},
//    "points": [
//      {"kind": "kernel", "kernel": "cudnn-9.19", "pass": "forward", "mask": "full", "batch": 1, "heads": 32, "kv_heads": 32,
//       "head_dim": 128, "rows": 8192, "cols": 8192, "samples": {"time_s": [...], "launch_s": [...]}},
//      {"kind": "memory", "operation": "merge", "tokens": 8192, "heads": 32, "head_dim": 128, "samples": ...},
//      {"kind": "transfer", "operation": "all_gather", "members": 2, "stride": 1, "channels": 0, "bytes": 4096, ...},
//      {"kind": "overlap", "kernel": {...}, "transfer": {...}, "launch_order": "compute-first", ...},
//      {"kind": "matmul", "kernel": "attnsim-cuda", "use": "forward", "rows": 8192, "cols": 6144, "inner": 4096, ...},
//      {"kind": "elementwise", "kernel": "attnsim-cuda", "operation": "norm", "rows": 8192, "width": 4096, ...},
//      {"kind": "sequence", "operations": "exchanges", "members": 2, "count": 16, "start": "ahead", ...}]}
//
// A sample is what the slowest rank took, in seconds. bf16 throughout.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "model/attention/attention.hpp"
#include "model/cluster/device.hpp"
#include "model/schedule/launch_order.hpp"

namespace attnsim {

/// One call of an attention kernel, one behind the other on an idle machine. A causal block has the same tokens on both
/// sides, or the last `rows` of `cols` tokens.
struct kernel_point {
  std::string kernel;  ///< of a device profile, with its version: attnsim-cuda, cudnn-9.19
  pass_kind pass = pass_kind::forward;
  mask_kind mask = mask_kind::full;
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  bool operator==(const kernel_point&) const = default;
};

/// Whether it has few rows against many keys, forward: what kernels that split keys take by a law of its own (cost/kernel.hpp).
bool has_few_rows(const kernel_point&);

/// merge, accumulate: fp32 from bf16; cast: bf16 from fp32; delta: bf16.
struct memory_point {
  std::string operation;
  std::int64_t tokens = 0;
  std::int64_t heads = 1;
  std::int64_t head_dim = 128;

  bool operator==(const memory_point&) const = default;
};

/// Bytes that memory has to read and write for it.
std::int64_t memory_traffic(const memory_point&);

enum class transfer_kind { send, exchange, all_gather, reduce_scatter, all_to_all, all_reduce };
std::string_view name_of(transfer_kind);
transfer_kind parse_transfer_kind(std::string_view);

/// All groups of `members` ranks, `stride` apart, at once; each group starts together. send: from every even place to the
/// next; exchange: each to the next round the ring.
struct transfer_point {
  transfer_kind operation = transfer_kind::send;
  int members = 2;
  int stride = 1;
  int channels = 0;        ///< allowed, each on a multiprocessor; 0: the transport's choice
  std::int64_t bytes = 0;  ///< of a slot: what a member sends another, contributes, or keeps
  std::int64_t also =
      0;            ///< bytes of a second message that a send or exchange has in the same group
  int at_once = 1;  ///< so many of the same, each on a communicator and a stream of its own

  bool operator==(const transfer_point&) const = default;
};

/// Both, launched in this order on idle devices: a square block beside an exchange, an all-gather or a reduce-scatter.
struct overlap_point {
  kernel_point kernel;
  transfer_point transfer;
  launch_order order = launch_order::communication_first;

  bool operator==(const overlap_point&) const = default;
};

/// What a layer does with a matrix of weights that has an output a row.
enum class product_use {
  forward,          ///< x W^T
  input_gradient,   ///< g W
  weight_gradient,  ///< g^T x
  gradient_sum,     ///< the same, added up in fp32
};
std::string_view name_of(product_use);
product_use parse_product_use(std::string_view);

/// A matrix product, rows x inner times inner x cols, again and again until clocks have settled, as in training. Samples start_s
/// and later_s: from 5 to 35 ms after a pause, and in the 30 ms behind.
struct product_point {
  std::string kernel;  ///< of a device profile, on whose device
  product_use use = product_use::forward;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t inner = 0;

  bool operator==(const product_point&) const = default;
};

/// An elementwise operation of a layer on rows of `width` elements; gates have two such rows in.
struct elementwise_point {
  std::string kernel;  ///< of a device profile, on whose device
  elementwise_kind operation = elementwise_kind::norm;
  std::int64_t rows = 0;
  std::int64_t width = 0;

  bool operator==(const elementwise_point&) const = default;
};

/// Bytes that it reads and writes, as a layer's list counts them.
std::int64_t elementwise_traffic(const elementwise_point&);

/// What a sequence has: casts of a token of 32 heads, exchanges of 64 bytes, or both in turn, each kind on a stream of its own.
enum class sequence_kind { casts, exchanges, both };
std::string_view name_of(sequence_kind);
sequence_kind parse_sequence_kind(std::string_view);

/// From idle devices one by one or as a graph; or ahead: all are launched before the first can start, which is when time begins.
enum class sequence_start { idle, graph, ahead };
std::string_view name_of(sequence_start);
sequence_start parse_sequence_start(std::string_view);

/// Short operations one after the other, each between two events of its own, as a schedule's are timed.
struct sequence_point {
  sequence_kind operations = sequence_kind::casts;
  int members = 2;  ///< ranks
  int count = 1;
  sequence_start start = sequence_start::idle;

  bool communicates(int number) const {
    return operations == sequence_kind::exchanges ||
           (operations == sequence_kind::both && number % 2 == 1);
  }
  memory_point cast() const { return {.operation = "cast", .tokens = 1, .heads = 32}; }
  transfer_point exchange() const {
    return {.operation = transfer_kind::exchange, .members = members, .bytes = 64};
  }
  bool operator==(const sequence_point&) const = default;
};

using measured_point = std::variant<kernel_point, memory_point, transfer_point, overlap_point,
                                    product_point, elementwise_point, sequence_point>;

/// By name: time_s; launch_s, for which the host's thread was busy launching; of an overlap also kernel_s and transfer_s,
/// each to its end, from when the host begins to launch it.
using sample = std::map<std::string, double>;

struct measurement {
  measured_point what;
  std::map<std::string, std::vector<double>> samples;

  void add(const sample&);
  std::size_t rounds() const;
  /// Throws std::out_of_range for a name without samples.
  double median(const std::string& name = "time_s") const;
};

struct measurements {
  std::map<std::string, std::string> environment;
  std::vector<measurement> points;
};

/// One line a point, for messages: "kernel cudnn forward full 32 heads of 128, 8192 x 8192".
std::string describe(const measured_point&);

/// How many it takes at least.
int ranks_of(const measured_point&);

/// Of what it is a measurement: "kernels", "memory", "transfers", "collectives", "overlap", "products", "elementwise"
/// or "launches".
std::string part_of(const measured_point&);

std::string to_json(const measurements&);
/// Throws input_error naming file, point, key and value.
measurements read_measurements(const std::string& path);
/// The same of the text of that file.
measurements read_measurements(const std::string& path, const std::string& text);

}  // namespace attnsim
