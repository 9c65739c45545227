#include "ask/frameworks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/attention/heads.hpp"
#include "model/error.hpp"
#include "model/named.hpp"

namespace attnsim {
namespace {

int ring_size(const strategy& s) {
  return s.rows * s.cols;
}

bool is_one_of(const strategy& s, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), s.schedule) != names.end();
}

std::string not_among(const strategy& s, std::string_view offered) {
  return fmt::format("has no {}; offers {}", s.schedule, offered);
}

/// Heads of a tensor-parallel rank, query and key heads alike, over the Ulysses degree.
std::string uneven_heads(const strategy& s, const attention& a) {
  const auto own = share_of(all_heads(a), s.tensor_parallel, 0);
  if (own.queries % s.ulysses == 0 && own.keys % s.ulysses == 0) return "";
  return fmt::format("{} query and {} K/V heads a rank are not multiples of Ulysses degree {}",
                     own.queries, own.keys, s.ulysses);
}

std::string other_tokens(const strategy& s, const attention& a, token_layout wanted,
                         std::string_view name) {
  const bool matters = a.mask == mask_kind::causal && ring_size(s) > 1 && s.tokens != wanted;
  return matters ? fmt::format("lays causal tokens out {} only ({})", name_of(wanted), name) : "";
}

std::string no_documents(const attention& a, std::string_view with) {
  return a.documents.empty() ? "" : fmt::format("has no packed documents{}", with);
}

std::string no_prefix(const attention& a) {
  return a.prefix > 0 ? "has no cached prefix that lies over the ranks" : "";
}

std::string no_sinks(const attention& a) {
  return a.sinks ? "has no attention sinks" : "";
}

std::string first_of(std::initializer_list<std::string> reasons) {
  for (const auto& r : reasons) {
    if (!r.empty()) return r;
  }
  return "";
}

std::string window_with_ring(const strategy& s, const attention& a) {
  return a.window > 0 && ring_size(s) > 1 ? "has no sliding window in a ring of K/V" : "";
}

std::string forward_of_full_mask(const attention& a, pass_kind pass) {
  if (a.mask != mask_kind::full) return "is for full masks only (diffusion models)";
  return pass == pass_kind::forward ? "" : "has no backward pass (inference)";
}

// --- Megatron-LM, TransformerEngine -------------------------------------------------------------

constexpr cp_comm_type comm_types[] = {
    {"p2p", "ring", false, false, true},
    {"allgather", "allgather", true, false, true},
    {"a2a", "ulysses", true, true, true},
    {"a2a+p2p", "usp", false, false, false},
};

std::string megatron_refusal(const strategy& s, const attention& a, pass_kind) {
  if (!is_one_of(s, {"ring", "allgather", "ulysses", "usp"}))
    return not_among(s, "ring (p2p), allgather, ulysses (a2a) and usp (a2a+p2p)");
  return first_of({no_prefix(a), cp_comm_type_of(s).window ? "" : window_with_ring(s, a),
                   a.sinks && !cp_comm_type_of(s).sink
                       ? fmt::format("has no attention sinks with {}", cp_comm_type_of(s).name)
                       : "",
                   uneven_heads(s, a),
                   cp_comm_type_of(s).documents ? "" : no_documents(a, " with a2a+p2p"),
                   other_tokens(s, a, token_layout::zigzag, "DualChunkSwap")});
}

/// TransformerEngine counts a window without the token itself.
std::string megatron_settings(const strategy& s, const attention& a) {
  const auto type = cp_comm_type_of(s).name;
  auto text = s.tensor_parallel > 1
                  ? fmt::format("--tensor-model-parallel-size {}\n", s.tensor_parallel)
                  : "";
  text += fmt::format("--context-parallel-size {}\n--cp-comm-type {}\n", ring_size(s) * s.ulysses,
                      type);
  if (type == "a2a+p2p") {
    text += fmt::format("--hierarchical-context-parallel-sizes {} {}\n", s.ulysses, ring_size(s));
  }
  if (a.window > 0) text += fmt::format("--window-size {},0\n", a.window - 1);
  if (a.sinks) text += "--softmax-type learnable\n";
  return text;
}

// --- TensorRT-LLM -------------------------------------------------------------------------------

std::string trtllm_refusal(const strategy& s, const attention& a, pass_kind pass) {
  if (!is_one_of(s, {"ring", "ulysses", "usp", "attention2d"}))
    return not_among(s, "ring, ulysses, attention2d, and Ulysses around ring or attention2d");
  if (s.order == kv_order::transposed) return "has no grid transpose of K/V";
  return first_of({no_prefix(a), no_sinks(a), forward_of_full_mask(a, pass), uneven_heads(s, a),
                   no_documents(a, "")});
}

std::string trtllm_settings(const strategy& s, const attention&) {
  auto text = fmt::format("parallel_config:\n  ulysses_size: {}\n", s.ulysses);
  text += s.schedule == "attention2d" ? fmt::format("  attn2d_size: [{}, {}]\n", s.rows, s.cols)
                                      : fmt::format("  ring_size: {}\n", ring_size(s));
  return s.tensor_parallel > 1 ? text + fmt::format("  tp_size: {}\n", s.tensor_parallel) : text;
}

// --- USP (yunchang), xDiT -----------------------------------------------------------------------

std::string usp_refusal(const strategy& s, const attention& a, pass_kind) {
  if (!is_one_of(s, {"ring", "ulysses", "usp"})) return not_among(s, "ring, ulysses and usp");
  return first_of(
      {no_prefix(a), no_sinks(a), window_with_ring(s, a), uneven_heads(s, a), no_documents(a, "")});
}

std::string usp_settings(const strategy& s, const attention& a) {
  const auto kind = a.mask == mask_kind::full || ring_size(s) == 1 ? "basic"
                    : s.tokens == token_layout::zigzag             ? "zigzag"
                    : s.tokens == token_layout::striped            ? "strip"
                                                                   : "basic";
  return fmt::format(
      "set_seq_parallel_pg(ulysses_degree={}, ring_degree={}, rank, world_size)\n"
      "LongContextAttention(ring_impl_type=\"{}\")\n",
      s.ulysses, ring_size(s), kind);
}

std::string xdit_refusal(const strategy& s, const attention& a, pass_kind pass) {
  return first_of({usp_refusal(s, a, pass), forward_of_full_mask(a, pass)});
}

std::string xdit_settings(const strategy& s, const attention&) {
  return fmt::format("--ulysses_degree {} --ring_degree {}\n", s.ulysses, ring_size(s));
}

/// Of its exchanges of heads; a ring sends what it has.
std::string xdit_fp8(const strategy& s, const attention& a) {
  const bool on_wire = a.dtype == data_type::bf16 && a.wire_dtype == data_type::fp8;
  return on_wire && ring_size(s) == 1 ? "--use_fp8_comms\n" : "";
}

// --- ring-flash-attention -----------------------------------------------------------------------

std::string ring_flash_refusal(const strategy& s, const attention& a, pass_kind) {
  if (!is_one_of(s, {"ring", "allgather"})) return not_among(s, "ring and allgather (llama3)");
  if (a.window > 0) return "has no sliding window";
  if (a.prefix > 0) return no_prefix(a);
  if (a.sinks) return no_sinks(a);
  if (s.schedule == "allgather")
    return other_tokens(s, a, token_layout::contiguous, "llama3_flash_attn_varlen_func");
  return a.documents.empty()
             ? ""
             : other_tokens(s, a, token_layout::zigzag, "zigzag_ring_flash_attn_varlen_func");
}

std::string ring_flash_settings(const strategy& s, const attention& a) {
  if (s.schedule == "allgather") {
    return fmt::format("llama3_flash_attn_varlen_func(..., heads_k_stride={})\n",
                       a.kv_heads / s.tensor_parallel);
  }
  const bool packed = !a.documents.empty();
  if (a.mask == mask_kind::full || s.tokens == token_layout::contiguous)
    return packed ? "ring_flash_attn_varlen_func\n" : "ring_flash_attn_func\n";
  if (packed) return "zigzag_ring_flash_attn_varlen_func\n";
  return s.tokens == token_layout::zigzag ? "zigzag_ring_flash_attn_func\n"
                                          : "stripe_flash_attn_func\n";
}

// --- torchtitan ---------------------------------------------------------------------------------

std::string torchtitan_refusal(const strategy& s, const attention& a, pass_kind) {
  if (s.schedule != "allgather") return not_among(s, "allgather");
  const auto wanted = a.documents.empty() ? token_layout::zigzag : token_layout::zigzag_stream;
  return first_of({no_prefix(a), other_tokens(s, a, wanted, "head-tail load balance")});
}

std::string torchtitan_settings(const strategy& s, const attention&) {
  auto text = fmt::format("--parallelism.context_parallel_degree {}\n", ring_size(s));
  if (s.tensor_parallel > 1)
    text += fmt::format("--parallelism.tensor_parallel_degree {}\n", s.tensor_parallel);
  return text;
}

// --- MagiAttention ------------------------------------------------------------------------------

std::string magi_refusal(const strategy& s, const attention& a, pass_kind) {
  return is_one_of(s, {"allgather", "hierarchical-allgather"})
             ? no_prefix(a)
             : not_among(s, "K/V sent to whom they are of use, nearest to allgather");
}

/// Chunks small enough for eight a rank, in the range that its documentation advises.
std::string magi_settings(const strategy& s, const attention& a) {
  const auto chunk =
      std::clamp<std::int64_t>(a.sequence / (std::int64_t{8} * ring_size(s)), 512, 2048);
  return fmt::format("chunk_size={}\nMAGI_ATTENTION_HIERARCHICAL_COMM={}\n", chunk,
                     s.schedule == "allgather" ? 0 : 1);
}

// --- vLLM, SGLang -------------------------------------------------------------------------------

/// Both gather K and V of a prefill's tokens in each layer, with Q local.
std::string gathers_keys_only(const strategy& s, const attention& a, pass_kind pass,
                              std::string_view offered) {
  if (s.schedule != "allgather") return not_among(s, offered);
  if (pass != pass_kind::forward) return "has no backward pass (inference)";
  return no_documents(a, "");
}

/// Decode context parallelism shares the ranks that would hold copies of the same K/V heads.
std::string vllm_decode_refusal(const strategy& s, const attention& a) {
  if (s.tensor_parallel != a.kv_heads) {
    return fmt::format("shards the cache of {} K/V heads over what tp {} leaves of the ranks only",
                       a.kv_heads, a.kv_heads);
  }
  return s.tokens == token_layout::striped ? "" : "deals cached tokens out striped only";
}

bool decodes_in_vllm(const strategy& s) {
  return is_one_of(s, {"dcp", "dcp-a2a"});
}

std::string vllm_refusal(const strategy& s, const attention& a, pass_kind pass) {
  if (decodes_in_vllm(s)) return vllm_decode_refusal(s, a);
  return first_of({gathers_keys_only(s, a, pass, "allgather, and to decode dcp and dcp-a2a"),
                   no_prefix(a), other_tokens(s, a, token_layout::zigzag, "head-tail chunks")});
}

/// Windows and sinks are the model's config.json's; room for the cache is asked for here.
std::string vllm_settings(const strategy& s, const attention& a) {
  if (decodes_in_vllm(s)) {
    return fmt::format(
        "--tensor-parallel-size {}\n--decode-context-parallel-size {}\n{}--max-model-len {}\n"
        "--max-num-seqs {}\n",
        s.tensor_parallel * ring_size(s), ring_size(s),
        s.schedule == "dcp" ? "" : "--dcp-comm-backend a2a\n", a.prefix + a.sequence, a.batch);
  }
  return fmt::format(
      "--tensor-parallel-size {}\n--prefill-context-parallel-size {}\n--max-num-batched-tokens "
      "{}\n",
      s.tensor_parallel, ring_size(s), a.batch * a.sequence);
}

bool decodes_in_sglang(const strategy& s) {
  return is_one_of(s, {"dcp", "dcp-a2a", "helix"});
}

/// Its decode context parallelism of other heads sums outputs by an all-reduce, which no schedule here does.
std::string sglang_decode_refusal(const strategy& s, const attention& a) {
  if (!a.latent) return "shards the cache of latent attention only";
  if (a.window > 0 || a.sinks) return "has no window and no sinks over a sharded cache";
  return s.tokens == token_layout::striped ? "" : "deals cached tokens out striped only";
}

/// Its interleaved tokens are for sparse attention.
std::string sglang_refusal(const strategy& s, const attention& a, pass_kind pass) {
  if (decodes_in_sglang(s)) return sglang_decode_refusal(s, a);
  if (auto reason =
          gathers_keys_only(s, a, pass, "allgather, and to decode dcp, dcp-a2a and helix");
      !reason.empty())
    return reason;
  if (a.prefix > 0) return "keeps the whole cache on every rank";
  return other_tokens(s, a, token_layout::zigzag, "interleave is of sparse attention");
}

std::string sglang_exchange(const strategy& s) {
  if (s.schedule == "dcp") return "ag_rs";
  return fmt::format("a2a\n--{}dcp-replicate-q-proj", s.schedule == "helix" ? "" : "no-");
}

/// Its tensor-parallel ranks are those of attention's context groups too, and of all groups that share a batch. A prompt is one
/// chunk, as it is here.
std::string sglang_groups(const strategy& s, const attention& a, int groups) {
  const auto places = ring_size(s);
  auto text = fmt::format("--tp-size {}\n", groups * s.tensor_parallel * places);
  if (groups > 1) text += fmt::format("--dp-size {}\n--enable-dp-attention\n", groups);
  if (!decodes_in_sglang(s)) {
    return text + fmt::format(
                      "--attn-cp-size {}\n--enable-prefill-cp\n--cp-strategy zigzag\n"
                      "--chunked-prefill-size {}\n",
                      places, a.batch * a.sequence);
  }
  if (places > 1)
    text += fmt::format("--dcp-size {}\n--dcp-comm-backend {}\n", places, sglang_exchange(s));
  return text + fmt::format("--context-length {}\n--max-running-requests {}\n",
                            a.prefix + a.sequence, a.batch);
}

std::string sglang_settings(const strategy& s, const attention& a) {
  return sglang_groups(s, a, 1);
}

/// Queries are cast to the cache's type where kernels compute in fp8.
std::string sglang_fp8(const strategy& s, const attention& a) {
  const bool all = a.dtype == data_type::fp8 && !a.wire_dtype;
  return all && decodes_in_sglang(s) ? "--kv-cache-dtype fp8_e4m3\n" : "";
}

// --- MaxText ------------------------------------------------------------------------------------

std::string maxtext_refusal(const strategy& s, const attention& a, pass_kind) {
  if (!is_one_of(s, {"ring", "allgather", "ulysses"}))
    return not_among(s, "ring, allgather and ulysses");
  if (a.mask != mask_kind::causal) return "is for causal masks only";
  const bool reorders = s.tokens == token_layout::contiguous;
  return first_of({no_prefix(a), window_with_ring(s, a), uneven_heads(s, a), no_documents(a, ""),
                   reorders ? "" : other_tokens(s, a, token_layout::zigzag, "or contiguous")});
}

std::string maxtext_settings(const strategy& s, const attention&) {
  auto text =
      fmt::format("ici_context_parallelism={}\ncontext_parallel_strategy={}\n",
                  ring_size(s) * s.ulysses, s.schedule == "allgather" ? "all_gather" : s.schedule);
  text += fmt::format("context_parallel_load_balance={}\n",
                      s.tokens == token_layout::zigzag && s.ulysses == 1);
  return s.tensor_parallel > 1
             ? text + fmt::format("ici_tensor_parallelism={}\n", s.tensor_parallel)
             : text;
}

// --- Diffusion models: vLLM-Omni, SGLang Diffusion, Diffusers -----------------------------------

std::string diffusion_refusal(const attention& a, pass_kind pass) {
  return first_of({no_prefix(a), no_sinks(a), forward_of_full_mask(a, pass), no_documents(a, "")});
}

std::string vllm_omni_refusal(const strategy& s, const attention& a, pass_kind pass) {
  if (!is_one_of(s, {"ring", "allgather", "ulysses", "usp", "ulysses-allgather"}))
    return not_among(s, "ring, allgather, ulysses, and ulysses around either");
  return first_of({diffusion_refusal(a, pass), s.schedule == "ulysses" ? "" : uneven_heads(s, a)});
}

std::string vllm_omni_settings(const strategy& s, const attention& a) {
  const bool gathers = is_one_of(s, {"allgather", "ulysses-allgather"});
  std::string fields = fmt::format("ulysses_degree={}", s.ulysses);
  if (ring_size(s) > 1)
    fields += fmt::format(", {}={}", gathers ? "allgather_degree" : "ring_degree", ring_size(s));
  if (!uneven_heads(s, a).empty()) fields += ", ulysses_mode=\"advanced_uaa\"";
  if (s.tensor_parallel > 1) fields += fmt::format(", tensor_parallel_size={}", s.tensor_parallel);
  return fmt::format("DiffusionParallelConfig({})\n", fields);
}

std::string sglang_diffusion_refusal(const strategy& s, const attention& a, pass_kind pass) {
  if (!is_one_of(s, {"ring", "allgather", "ulysses", "usp"}))
    return not_among(s, "ring, allgather, ulysses and usp");
  return first_of({diffusion_refusal(a, pass), uneven_heads(s, a)});
}

std::string sglang_diffusion_settings(const strategy& s, const attention&) {
  auto text = s.tensor_parallel > 1 ? fmt::format("--tp-size {}\n", s.tensor_parallel) : "";
  if (s.schedule == "allgather") return text + fmt::format("--kv-gather-degree {}\n", ring_size(s));
  return text + fmt::format("--ulysses-degree {}\n--ring-degree {}\n", s.ulysses, ring_size(s));
}

std::string diffusers_refusal(const strategy& s, const attention& a, pass_kind pass) {
  if (!is_one_of(s, {"allgather", "ulysses", "ulysses-allgather"}))
    return not_among(s, "allgather (its ring), ulysses, and both");
  return first_of({diffusion_refusal(a, pass), s.schedule == "ulysses" ? "" : uneven_heads(s, a),
                   s.tensor_parallel > 1 ? "has no tensor parallelism beside it" : ""});
}

std::string diffusers_settings(const strategy& s, const attention& a) {
  return fmt::format("ContextParallelConfig(ring_degree={}, ulysses_degree={}{})\n", ring_size(s),
                     s.ulysses, uneven_heads(s, a).empty() ? "" : ", ulysses_anything=True");
}

constexpr framework table[] = {
    {"megatron", megatron_refusal, megatron_settings},
    {"trtllm", trtllm_refusal, trtllm_settings},
    {"usp", usp_refusal, usp_settings},
    {.name = "xdit", .refusal = xdit_refusal, .settings = xdit_settings, .fp8 = xdit_fp8},
    {"ring-flash-attention", ring_flash_refusal, ring_flash_settings},
    {"torchtitan", torchtitan_refusal, torchtitan_settings},
    {"magiattention", magi_refusal, magi_settings},
    {.name = "vllm", .refusal = vllm_refusal, .settings = vllm_settings, .gathers_latents = true},
    {.name = "sglang",
     .refusal = sglang_refusal,
     .settings = sglang_settings,
     .groups = sglang_groups,
     .fp8 = sglang_fp8},
    {"maxtext", maxtext_refusal, maxtext_settings},
    {"vllm-omni", vllm_omni_refusal, vllm_omni_settings},
    {"sglang-diffusion", sglang_diffusion_refusal, sglang_diffusion_settings},
    {"diffusers", diffusers_refusal, diffusers_settings},
};

}  // namespace

std::span<const framework> frameworks() {
  return table;
}

std::span<const cp_comm_type> cp_comm_types() {
  return comm_types;
}

const cp_comm_type& cp_comm_type_of(const strategy& s) {
  const bool ring = ring_size(s) > 1;
  const std::string_view runs = s.schedule == "allgather" ? "allgather"
                                : s.ulysses == 1          ? "ring"
                                                          : (ring ? "usp" : "ulysses");
  return *std::find_if(std::begin(comm_types), std::end(comm_types),
                       [&](const cp_comm_type& type) { return type.schedule == runs; });
}

const framework& find_framework(std::string_view name) {
  try {
    return find_named(table, name);
  } catch (const std::invalid_argument& e) {
    throw input_error(asked("emit"), std::string(name), e.what());
  }
}

namespace {

std::string settings_of(const framework& f, const prediction& p, const attention& a) {
  return f.groups ? f.groups(p.chosen, a, p.data_parallel) : f.settings(p.chosen, a);
}

std::string fp8_settings(const framework& f, const strategy& s, const attention& a) {
  return f.fp8 ? f.fp8(s, a) : "";
}

/// What no settings here can say.
std::string without_setting(const framework& f, const strategy& s, const attention& a) {
  if (s.keys_sent == key_form::latent && !f.gathers_latents)
    return "has no setting that sends latents";
  const bool told = !fp8_settings(f, s, a).empty();
  if (a.dtype == data_type::fp8 && !told)
    return "has fp8 attention by settings that are not known here";
  if (a.wire_dtype && !told) return "has no setting for another type between ranks";
  return a.kept_first > 0 ? "has no setting that keeps first tokens behind a window" : "";
}

}  // namespace

emitted_settings settings_of_best(const framework& f, const plan_result& plan) {
  emitted_settings found;
  for (const auto& p : plan.candidates) {
    auto reason = without_setting(f, p.chosen, plan.problem);
    if (reason.empty()) reason = f.refusal(p.chosen, plan.problem, plan.pass);
    if (reason.empty()) {
      found.lines = settings_of(f, p, plan.problem) + fp8_settings(f, p.chosen, plan.problem);
      return found;
    }
    found.refusals.push_back(std::move(reason));
  }
  throw infeasible(asked("emit"), std::string(f.name),
                   fmt::format("can do none of the {} best; try other schedules or more candidates",
                               plan.candidates.size()));
}

}  // namespace attnsim
