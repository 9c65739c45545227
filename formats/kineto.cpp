#include "formats/kineto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "formats/json.hpp"
#include "model/spelling.hpp"

namespace attnsim::formats {
namespace {

using nlohmann::json;

constexpr int deepest_trace = 64;
constexpr double most_microseconds = 1e17;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool has_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return has(text, part); });
}

/// In lower case. Of FlashAttention 2 to 4, cuDNN (also TransformerEngine's), PyTorch and xFormers, TensorRT-LLM, CK;
/// FlashInfer; FlexAttention; SageAttention; Triton's tutorial, AOTriton, vLLM.
constexpr std::string_view attention_parts[] = {"flash_fwd",
                                                "flash_bwd",
                                                "flashattn",
                                                "flash_attn",
                                                "flash_attention",
                                                "flashattention",
                                                "flash_fprop",
                                                "flash_bprop",
                                                "fmha",
                                                "sdpa",
                                                "attention_kernel",
                                                "attentionkernel",
                                                "attentionbackwardkernel",
                                                "prefillwith",
                                                "decodewith",
                                                "mlapagedattention",
                                                "flex_attention",
                                                "flex_decoding",
                                                "attn_kernel",
                                                "attn_fwd",
                                                "attn_bwd",
                                                "unified_attention",
                                                "bwd_kernel_dk_dv",
                                                "bwd_kernel_dq"};

/// Around attention: its delta, the conversion of gradients, the merge of parts, quantization.
constexpr std::string_view auxiliary_parts[] = {
    "dot_do_o", "convert_d", "combine", "preprocess", "postprocess", "merge", "quant_per"};

constexpr std::string_view backward_parts[] = {"bwd", "bprop", "backward", "cutlassb"};

std::string_view name_of(kernel_role role) {
  switch (role) {
    case kernel_role::attention:
      return "attention kernels";
    case kernel_role::attention_backward:
      return "attention kernels of the backward pass";
    case kernel_role::all_gather:
      return "all-gathers";
    case kernel_role::reduce_scatter:
      return "reduce-scatters";
    case kernel_role::point_to_point:
      return "sends and receives";
    case kernel_role::other_collective:
    case kernel_role::other:
      break;
  }
  return "other kernels";
}

/// other: an operation that has no kernel of its own to match.
kernel_role role_of(op_kind kind) {
  switch (kind) {
    case op_kind::attention:
      return kernel_role::attention;
    case op_kind::attention_backward:
      return kernel_role::attention_backward;
    case op_kind::all_gather:
      return kernel_role::all_gather;
    case op_kind::reduce_scatter:
      return kernel_role::reduce_scatter;
    case op_kind::shift:
    case op_kind::transpose:
    case op_kind::all_to_all:
      return kernel_role::point_to_point;
    default:
      return kernel_role::other;
  }
}

class kineto_reader {
 public:
  explicit kineto_reader(const source& from) : from_(from) {}

  kineto_trace read() {
    // Events other than kernels are dropped as soon as they are read.
    const auto root = parse_json(from_, deepest_trace, [](int depth, const json& value) {
      const bool is_event = depth == 2 && value.is_object() && value.contains("ph");
      return !is_event || text_of(value, "cat") == "kernel";
    });
    if (!root.is_object() || !root.contains("traceEvents") || !root["traceEvents"].is_array()) {
      fail("expected a trace of PyTorch's profiler: an object with a list of traceEvents");
    }
    read_head(root);
    for (const auto& event : root["traceEvents"]) {
      if (event.is_object()) read_kernel(event);
    }
    if (trace_.kernels.empty()) fail("expected kernels among the traceEvents");
    std::stable_sort(trace_.kernels.begin(), trace_.kernels.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
    const auto first = trace_.kernels.front().start;
    for (auto& k : trace_.kernels) {
      k.start -= first;
      k.end -= first;
    }
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { fail_at(from_, 1, message); }

  static std::string text_of(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
  }

  /// A whole number, or the fallback where there is none.
  static int integer_of(const json& object, const char* key, int fallback) {
    const auto found = object.find(key);
    const bool fits =
        found != object.end() && found->is_number_integer() && *found >= -1 && *found <= 1 << 30;
    return fits ? found->get<int>() : fallback;
  }

  void read_head(const json& root) {
    if (root.contains("distributedInfo") && root["distributedInfo"].is_object())
      trace_.rank = integer_of(root["distributedInfo"], "rank", 0);
    if (!root.contains("deviceProperties") || !root["deviceProperties"].is_array()) return;
    for (const auto& device : root["deviceProperties"]) {
      if (device.is_object() && trace_.device.empty()) trace_.device = text_of(device, "name");
    }
  }

  double microseconds(const json& event, const char* key, const std::string& name) const {
    const auto found = event.find(key);
    const bool fits = found != event.end() && found->is_number() && found->get<double>() >= 0 &&
                      found->get<double>() < most_microseconds;
    if (!fits)
      fail(fmt::format("traceEvents: {}: {}: expected microseconds", name.substr(0, 60), key));
    return found->get<double>();
  }

  void read_kernel(const json& event) {
    if (text_of(event, "cat") != "kernel" || text_of(event, "ph") != "X") return;
    traced_kernel k{.name = text_of(event, "name")};
    k.role = formats::role_of(k.name);
    const auto args = event.find("args");
    if (args != event.end() && args->is_object()) {
      k.device = integer_of(*args, "device", 0);
      k.stream = integer_of(*args, "stream", 0);
    }
    const double start = microseconds(event, "ts", k.name);
    k.start = seconds(start * 1e-6);
    k.end = seconds((start + microseconds(event, "dur", k.name)) * 1e-6);
    trace_.kernels.push_back(std::move(k));
  }

  const source& from_;
  kineto_trace trace_;
};

/// A rank on the grid's diagonal has nothing to exchange in a transpose.
bool runs_on(const schedule& program, const operation& op, int rank) {
  return op.kind != op_kind::transpose || rank >= program.grid.ranks() ||
         program.send_peer(op, rank) != rank;
}

/// Time within [from, to] in which kernels of a stream ran; kernels of a stream do not overlap.
seconds busy(const kineto_trace& trace, int stream, seconds from, seconds to) {
  seconds sum;
  for (const auto& k : trace.kernels) {
    const auto start = std::max(k.start, from), end = std::min(k.end, to);
    if (k.stream == stream && start < end) sum += end - start;
  }
  return sum;
}

}  // namespace

kernel_role role_of(std::string_view name) {
  if (name.starts_with("nccl")) {
    if (has(name, "AllGather")) return kernel_role::all_gather;
    if (has(name, "ReduceScatter")) return kernel_role::reduce_scatter;
    if (has(name, "SendRecv")) return kernel_role::point_to_point;
    return kernel_role::other_collective;
  }
  const auto plain = lower_case(name);
  if (!has_any(plain, attention_parts) || has_any(plain, auxiliary_parts))
    return kernel_role::other;
  return has_any(plain, backward_parts) ? kernel_role::attention_backward : kernel_role::attention;
}

kineto_trace read_kineto(const source& from) {
  return kineto_reader(from).read();
}

std::vector<rank_timeline> match_kernels(const kineto_trace& trace, const schedule& program) {
  std::map<kernel_role, std::vector<std::uint32_t>> operations;
  for (std::uint32_t i = 0; i < program.program.size(); ++i) {
    const auto& op = program.program[i];
    const auto role = role_of(op.kind);
    if (role != kernel_role::other && runs_on(program, op, trace.rank))
      operations[role].push_back(i);
  }
  std::map<kernel_role, std::vector<const traced_kernel*>> kernels;
  for (const auto& k : trace.kernels) kernels[k.role].push_back(&k);
  std::size_t passes = 0;
  for (const auto& [role, list] : operations) {
    const auto found = kernels[role].size();
    if (passes == 0) passes = found / list.size();
    if (found == 0 || found != passes * list.size()) {
      throw input_error(
          fmt::format("the trace has {} {}, a pass of the schedule {}: expected {}", found,
                      name_of(role), list.size(),
                      passes == 0 ? "a multiple"
                                  : fmt::format("{} for {} passes", passes * list.size(), passes)));
    }
  }
  for (const auto& [role, list] : kernels) {
    const bool moves_blocks = role == kernel_role::all_gather ||
                              role == kernel_role::reduce_scatter ||
                              role == kernel_role::point_to_point;
    if (moves_blocks && !operations.contains(role))
      throw input_error(fmt::format("the trace has {} {}, a pass of the schedule 0: expected none",
                                    list.size(), name_of(role)));
  }
  std::vector<rank_timeline> timelines(passes);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    auto& t = timelines[pass];
    t.rank = trace.rank;
    int stream = 0;
    for (const auto& [role, list] : operations) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto& k = *kernels[role][pass * list.size() + i];
        t.intervals.push_back({list[i], k.start, k.end});
        if (is_kernel(program.program[list[i]].kind)) stream = k.stream;
      }
    }
    const auto start =
        std::min_element(t.intervals.begin(), t.intervals.end(), [](const auto& a, const auto& b) {
          return a.start < b.start;
        })->start;
    std::sort(t.intervals.begin(), t.intervals.end(),
              [](const auto& a, const auto& b) { return a.end < b.end; });
    t.end = t.intervals.back().end - start;
    t.compute = busy(trace, stream, start, start + t.end);
    for (auto& i : t.intervals) {
      i.start -= start;
      i.end -= start;
    }
  }
  return timelines;
}

}  // namespace attnsim::formats
