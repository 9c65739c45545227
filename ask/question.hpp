// What is asked: a cluster, an attention layer on it, and how the layer is to be distributed. The command line, a sweep's
// row, Python and files of cases all fill in one question by the names of its fields, and all get the same messages:
// about the field, which each of them words as its user knows it (model/error.hpp).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ask/field.hpp"
#include "ask/planner.hpp"
#include "ask/predict.hpp"
#include "model/attention/attention.hpp"
#include "model/attention/model_shapes.hpp"
#include "model/cluster/cluster.hpp"
#include "model/schedule/framework_profile.hpp"
#include "model/schedule/strategy.hpp"

namespace attnsim::ask {

/// Empty values are chosen: heads, mask and window by the model, a full mask for keys of another sequence, tokens by the
/// schedule, the grid by the planner or the schedule.
struct question {
  std::string cluster;  ///< a shipped name or a file
  cluster_overrides overrides;
  std::optional<std::int64_t> ranks;

  std::optional<std::int64_t> sequence;  ///< tokens
  std::vector<std::int64_t> documents;   ///< tokens of each
  std::int64_t prefix = 0;               ///< cached tokens before the sequence
  std::vector<std::int64_t> prefixes;    ///< of each request of a batch of several lengths
  std::int64_t kv_sequence = 0;          ///< tokens of the other sequence; 0: none
  std::int64_t batch = 1;
  std::optional<std::int64_t> heads, kv_heads, head_dim, v_head_dim;
  std::string model;
  layer_kind layer = layer_kind::full;  ///< of a model that has both
  std::optional<mask_kind> mask;
  std::optional<std::int64_t> window;  ///< tokens
  std::int64_t kept_first = 0;         ///< tokens that the window keeps visible
  data_type dtype = data_type::bf16;
  std::optional<data_type> wire_dtype;
  pass_kind pass = pass_kind::both;
  std::optional<bool> sinks;
  bool latent = false;  ///< absorbed
  bool pad = false;

  std::string schedule = "ring";
  std::optional<kv_order> order;
  std::optional<std::pair<int, int>> grid;
  std::optional<std::int64_t> ulysses;
  std::optional<std::int64_t> tensor_parallel;
  std::optional<token_layout> tokens;
  std::optional<std::string> placement;
  std::string kernel;
  std::optional<reduction_kind> reduction;
  std::optional<merge_kind> merges;
  std::optional<launch_order> launch;
  std::optional<precision> partials, gradients;
  std::optional<key_form> keys_sent;
  std::vector<level> levels;         ///< of a composed schedule
  std::int64_t parts = 1;            ///< of the heads, one after the other
  std::vector<std::int64_t> shares;  ///< of the tokens, by chunk; empty: equal
  std::string schedule_file;         ///< it has set what it holds
  std::string
      framework;  ///< a shipped profile or a file; sets what of the strategy, and the host, is not given

  prediction_method by = prediction_method::simulation;
};

using field = field_of<question>;

std::span<const field> fields();

/// Null for an unknown name.
const field* find_field(std::string_view name);

void set(question&, std::string_view name, const std::string& text);

/// Sets what a schedule file holds (ask/schedule_file.hpp).
void use_schedule_file(question&, const std::string& file);

/// The same by a field's name or, by its path, a key of the cluster file; "cluster" is the cluster's name.
void set_key(question&, const std::string& key, const std::string& text);
/// Of no field. A word that the file has not either may be one of `fields`, misspelt.
void set_cluster_key(question&, const std::string& key, const std::string& text,
                     const std::vector<std::string>& fields);

/// The fields that are given, in the table's order, but for those left out: "seq=4096 heads=8".
std::string written(const question&, std::initializer_list<std::string_view> left_out = {});

/// With the framework's host, where there is one and none is given. Throws as read_cluster of model/cluster/cluster.hpp and
/// read_framework_file do.
cluster cluster_of(const question&);

/// All devices unless asked for fewer. Throws infeasible when the cluster has not so many.
int ranks_of(const question&, const cluster&);

/// Not checked, without padding, of no tokens where none are given.
attention layer_of(const question&);

/// As the question's framework gives it to attention: it may repeat keys and values for every query head.
attention as_framework_has_it(attention, const question&);

/// When padding is asked for, the sequence, or each document, grows to the next multiple of `unit` tokens. Throws as check()
/// does.
attention problem_of(const question&, std::int64_t unit);

/// What is not given: the schedule's usual tokens and placement, contiguous tokens under a full mask, the transposed order
/// of striped tokens on a square grid where a paper has it. Not completed (model/schedule/algorithms/schedules.hpp).
strategy strategy_of(const question&, const attention&);

/// A plan that keeps what the strategy's fields give; schedules by name, none: all.
plan_request plan_of(const question&, int ranks, std::vector<std::string> schedules);
plan_request plan_of(const question&, const attention&, int ranks,
                     std::vector<std::string> schedules);

/// Of tokens that are left open the fastest (ask/fastest_tokens.hpp).
prediction predict(const question&, const cluster&);
/// One of many on a cluster.
prediction predict(const question&, shared_work&);

}  // namespace attnsim::ask
