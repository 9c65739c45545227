// What is asked about a whole step: a model on a cluster, its batch, how it is cut over devices, and how attention is
// distributed over those that share a sequence. A row of the table a field, as ask/question.hpp has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ask/question.hpp"
#include "model/layer/layer.hpp"
#include "model/step/memory.hpp"

namespace attnsim::ask {

enum class step_task {
  train,    ///< forward, backward, optimizer
  prefill,  ///< forward alone, up to a batch's first tokens
};
enum class step_type { bf16, fp8_linear };  ///< of products; attention is in bf16

std::string_view name_of(step_task);
std::string_view name_of(step_type);
step_task parse_task(std::string_view);
step_type parse_step_type(std::string_view);

/// What is not given is 1, or none; a plan tries it (ask/step_plan.hpp).
struct step_question {
  /// The cluster, and attention: sequence, prefix, schedule and what goes with it. Its model, heads, batch and tensor-parallel
  /// degree are the step's.
  question base;
  std::string model;
  std::optional<std::int64_t>
      global_batch;  ///< sequences; not given: a micro-batch a data-parallel rank
  std::optional<std::int64_t> micro_batch;  ///< sequences
  std::optional<std::int64_t> tensor, context, pipeline, chunks, expert;
  std::optional<std::int64_t> data;  ///< not given: what the ranks leave
  std::optional<sharding> shard;
  std::optional<recomputation> recompute;
  step_type dtype = step_type::bf16;
  step_task task = step_task::train;
  bool tensor_overlap = false;
  bool eager = false;
  bool fused_norms = false;  ///< where operations are eager (model/layer/layer.hpp); no field
  double expert_skew = 1;
  byte_count
      reserve;  ///< of a device's memory, for what is not counted: contexts, libraries, fragmentation

  std::int64_t sequences() const { return micro_batch.value_or(1); }  ///< of a micro-batch
};

using step_field = field_of<step_question>;

/// First those of ask/question.hpp that a step has, then its own.
std::span<const step_field> step_fields();

/// Null for an unknown name.
const step_field* find_step_field(std::string_view name);

void set(step_question&, std::string_view name, const std::string& text);
/// A field by its name, or a key of the cluster file by its path, as ask/question.hpp has it.
void set_key(step_question&, const std::string& key, const std::string& text);

/// Fields that are given, in the table's order.
std::string written(const step_question&);

}  // namespace attnsim::ask
