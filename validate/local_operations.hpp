// The operations of a schedule that stay on one rank, as calls of a back end.
//
// An attention operation is one kernel call a tile, on the tile's rows and columns of its operands; in a batch of requests of
// different lengths one for all requests, or as many as the request has tiles that has most.
// A result that adds to what is there, or that lies in another number format than the kernel
// writes, goes through scratch (workload::uses_scratch). Rows and columns that no call is the first
// to write start as nothing seen: lse -infinity, gradients 0.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "kernels/backend.hpp"
#include "model/cost/workload.hpp"
#include "validate/device_memory.hpp"
#include "validate/token_moves.hpp"

namespace attnsim::validate {

class local_operations {
 public:
  /// References are kept.
  local_operations(const workload&, int rank, kernels::backend&, const device_memory&);

  void enqueue(kernels::stream_id, std::size_t op);

  /// Where an operand's first slot lies.
  std::byte* address(const operand&) const;
  data_type type(const operand&) const;

 private:
  void attend(kernels::stream_id, std::size_t op);
  void fill_unwritten(kernels::stream_id, const operation&, const std::vector<tile>&);
  void attend_each(kernels::stream_id, const operation&, const std::vector<tile>&);
  kernels::forward_arguments forward_arguments_of(const operation&, const tile&) const;
  void call_kernel(kernels::stream_id, const operation&, const tile&);
  void bring_to_place(kernels::stream_id, const operation&, const tile&);
  void merge(kernels::stream_id, const operation&);
  void weigh(kernels::stream_id, const operation&);
  void sink(kernels::stream_id, const operation&);
  void expand(kernels::stream_id, const operation&);
  void accumulate(kernels::stream_id, const operation&);
  void delta(kernels::stream_id, const operation&);
  void copy(kernels::stream_id, std::size_t op);
  void deal(kernels::stream_id, const operand& from, const operand& into);
  void collect(kernels::stream_id, const operand& from, const operand& into);

  std::int64_t token_count(const operand&) const;
  std::int64_t slot_tokens(const operand&) const;
  std::int64_t heads_of_slot(const operand&) const;
  head_range heads(const operand&, int slot = 0) const;
  /// Of the rank's heads; slots have room for as many as any rank has.
  kernels::token_shape shape(const operand&) const;
  /// One share of the heads of the own tokens: where it lies in a slot, and among all heads.
  kernels::token_shape share_shape(const operand& dealt, int slot) const;
  kernels::device_tensor share_in(const operand& dealt, int slot) const;
  kernels::device_tensor share_among(const operand& all, const operand& dealt, int slot) const;
  /// All of them in one tensor, whose sequences are the shares and whose tokens those of all sequences.
  struct all_shares {
    kernels::token_shape shape;
    kernels::device_tensor apart, among;
  };
  std::optional<all_shares> shares_at_once(const operand& all, const operand& dealt) const;
  kernels::device_tensor whole(const operand&) const;
  /// The operand's rows or columns that a tile names.
  kernels::device_tensor part(const operand&, const tile&) const;
  kernels::token_shape part_shape(const operand&, const tile&) const;
  /// The same in scratch, where a kernel call leaves its result.
  kernels::device_tensor in_scratch(const operation&, const tile&, const operand&) const;
  /// Where a kernel call writes a result: in place or in scratch.
  kernels::device_tensor target(const operation&, const tile&, tensor) const;
  /// Whether the operation may add up partial results where its first operand lies.
  /// The chunk-sized pieces of partial results for one chunk, or the operand itself.
  std::vector<kernels::device_tensor> partials(const operands&, tensor) const;

  const workload& work_;
  int rank_;
  kernels::backend& device_;
  const device_memory& memory_;
  std::map<std::size_t, std::vector<std::vector<token_move>>> moves_;  ///< of copies, by operand
  std::map<std::size_t, std::vector<tile>> tiles_;                     ///< of attention
};

}  // namespace attnsim::validate
