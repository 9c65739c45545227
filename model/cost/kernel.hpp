// Time of one attention kernel call: useful operations over a rate that depends on its shape.
//
//   operations = 4 (forward) or 10 (backward) x visible pairs x batch x heads x head_dim
//                                                                       (FlashAttention-2, sec. 4)
//   with heads of k elements in Q and K and of v in V and O: forward 2 k + 2 v a pair, two products; backward 6 k + 4 v, five
//   time       = launch + operations / rate(rows, cols, heads, mask)
//
// The rate comes from the kernel's measured tables, read as the kernel's loops read the shape:
//   tiles    128 rows (forward) or columns (backward) of a head; tiles run in parallel, each loops
//            over the columns (rows) it sees
//   loop     a tile's time is a fixed part and a part that grows with its loop: long loops reach
//            the plateau. Rectangles and triangles of one mean loop length run at nearly one rate
//   waves    tiles beyond a whole number per multiprocessor make it wait; fewer leave some idle. Triangles of a kernel of
//            waves end by their longest tile later: blocks start in a fixed order, longest last
//   beyond   the largest triangle, the rate approaches that of squares: what triangles lose goes with their rows
//   mask     between a triangle and the rectangle around it, time is linear in the visible pairs
//   rows     backward, rows take time of their own besides (delta, conversion of dQ), tiles or not: part of the fixed
//            time, but no more than their bytes take of the memory
//   between  head dimensions, and below the smallest, time is linear (the softmax does not shrink); heads of k and v
//            elements are read as heads with as many operations a pair;
//            between rows of a grid the rate is interpolated in log space; above the largest it stays.
//            Grids are best measured at whole tiles: calls are read as such
// so time grows continuously with rows, columns, pairs and heads. No rate exceeds the table's
// largest or the peak.
//
// A kernel with a law (device.hpp, kernel_law) needs no table: its blocks' times add up. Between the masks it is read as
// tables are, as are other head dimensions; between measured numbers of query heads of a K/V head time is linear in their
// logarithm.
//
// Few query rows, at most those of a block, against many keys, where the kernel has a key_split (flash-decoding): the g query
// heads of a K/V head share blocks, and keys are split while a split has `least` keys and multiprocessors are left:
//   blocks     = batch x K/V heads x max(1, rows g / rows of a block)
//   splits     = keys / least, from 1 to multiprocessors / blocks; filled = blocks x splits / multiprocessors, at most 1
//   reading    = K and V once a block / (efficiency x bandwidth x min(1, filled / filling))
//   computing  = operations of whole blocks / (the kernel's highest rate x filled)
//   time       = launch + max(reading, computing) + combine + the splits' outputs in fp32, written and read
// or what the tables and laws say where that is less; up to twice as many rows something in between, in log space. Like them it
// grows with rows, columns, pairs and heads: combining is charged to calls that need no split, too.
//
// Where a device has no table for the pass, and for fp32, a roofline stands in: the larger of
// operations / (roofline_efficiency x peak) and bytes / memory bandwidth. Of backward passes in fp8, of which no rates are known, the
// time of 16 bits divided by how much faster the kernel's forward pass is at most.
#pragma once

#include "model/cluster/device.hpp"
#include "model/schedule/run_start.hpp"

namespace attnsim {

struct kernel_call {
  pass_kind pass = pass_kind::forward;  ///< forward or backward
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;
  std::int64_t v_head_dim = 0;  ///< 0: as head_dim
  bool latent = false;          ///< values are in the keys, read once
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t pairs = 0;  ///< visible (row, column) pairs; rows x cols when nothing is masked
  /// Of all sequences of the batch where their lengths differ and cols and pairs are means, rounded up. 0: batch x pairs.
  std::int64_t pairs_of_batch = 0;
  data_type dtype = data_type::bf16;

  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  /// Of a token's key and value of a head.
  std::int64_t stored_dims() const { return head_dim + (latent ? 0 : value_dim()); }
  double all_pairs() const {
    return pairs_of_batch > 0 ? static_cast<double>(pairs_of_batch)
                              : static_cast<double>(batch) * static_cast<double>(pairs);
  }
};

/// Of one visible pair of one head. `pass` is forward or backward.
double operations_a_pair(pass_kind pass, std::int64_t head_dim);
double operations_a_pair(pass_kind pass, std::int64_t head_dim, std::int64_t value_dim);

/// The head dimension of Q, K, V and O alike that takes as many operations; not always a whole number.
double mean_head_dim(const kernel_call&);

flop_count operations(const kernel_call&);

/// What a law's block and token are multiplied with.
struct law_terms {
  double blocks = 0;
  double tokens = 0;
};
/// Of a rectangle under the law's mask, for fits. Which of a triangle's two times counts depends on its block and token.
law_terms law_terms_of(const kernel_law&, const kernel_call&, int multiprocessors);

/// The law that the kernel's time is read from, where one is: of several tiles the one that it takes.
const kernel_law* law_taken(const device_profile&, const kernel_profile&, const kernel_call&);

/// Relative half-width of a 90 % interval around the call's time.
double kernel_uncertainty(const device_profile&, const kernel_profile* kernel, const kernel_call&);

/// Over how many ranges of keys, on average, a call's blocks are split; 1 where the kernel splits none or rows are not few.
double key_splits(const device_profile&, const kernel_profile* kernel, const kernel_call&);

/// How many equal parts of a call leave multiprocessors to others in between: its waves of thread blocks; 1 where the
/// kernel is persistent or has no law. `kernel` may be null: 1.
double kernel_parts(const device_profile&, const kernel_profile* kernel, const kernel_call&);

/// Zero when no pair is visible: such a call is not launched. `kernel` may be null: roofline. From idle devices it is
/// faster by the kernel's boost.
seconds kernel_time(const device_profile&, const kernel_profile* kernel, const kernel_call&,
                    run_start = run_start::in_sequence);

/// What the host takes to launch the call, of so many requests (device.hpp, call_launches); zero: nobody measured it.
seconds call_launch(const kernel_profile* kernel, const kernel_call&, std::int64_t requests = 1);

/// What no call exceeds: the largest rate of the kernel's tables and laws for the pass, else the roofline's.
flop_rate highest_rate(const device_profile&, const kernel_profile* kernel, data_type, pass_kind);
/// The same of calls of this (mean) head dimension, which are read from the measured ones next to it.
flop_rate highest_rate(const device_profile&, const kernel_profile* kernel, data_type, pass_kind,
                       double head_dim);

}  // namespace attnsim
