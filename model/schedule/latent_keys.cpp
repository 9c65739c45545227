#include "model/schedule/latent_keys.hpp"

#include <algorithm>
#include <map>

#include "model/schedule/slots.hpp"

namespace attnsim {
namespace {

bool is_expanded(tensor t) {
  return t == tensor::k || t == tensor::v;
}

/// Writes a program anew, with latents in the place of keys and values that move.
class with_latents {
 public:
  with_latents(schedule s, key_form sent, own_keys own)
      : s_(std::move(s)), starts_with_(inputs_of(s_)), own_(own) {
    program_ = std::move(s_.program);
    s_.program.clear();
    moved_.resize(s_.buffers.size());
    if (sent == key_form::latent) find_moved();
  }

  schedule run() {
    for (auto& op : program_) {
      if (is_kernel(op.kind)) {
        expand_for(op);
      } else {
        for (const auto& o : op.writes) expanded_.remove(s_, o);
        if (moves_keys(op)) {
          for (auto* list : {&op.reads, &op.writes}) move_latents(*list);
        } else if (contains(op.reads, tensor::k)) {
          expand_for(op);
        }
      }
      if (!op.reads.empty()) s_.program.push_back(std::move(op));
    }
    if (own_ == own_keys::latents) keep_latents_only();
    derive_needs(s_);
    return std::move(s_);
  }

 private:
  bool is_home(const operand& o) const {
    return std::any_of(starts_with_.begin(), starts_with_.end(),
                       [&](const operand& one) { return one.buffer == o.buffer; });
  }

  bool is_moved(const operand& o) const { return moved_[static_cast<std::size_t>(o.buffer)]; }

  /// Keys and values that come from elsewhere, and what is copied to be sent or of what came.
  void find_moved() {
    sends_latents_ = true;
    for (bool grows = true; grows;) {
      grows = false;
      for (const auto& op : program_) {
        if (is_kernel(op.kind)) continue;
        const bool all = moves_keys(op);
        for (const auto* list : {&op.reads, &op.writes}) {
          for (const auto& o : *list) {
            if (!all || !is_expanded(o.what) || is_home(o) || is_moved(o)) continue;
            moved_[static_cast<std::size_t>(o.buffer)] = grows = true;
          }
        }
      }
    }
  }

  bool moves_keys(const operation& op) const {
    const auto moved = [&](const operand& o) { return is_expanded(o.what) && is_moved(o); };
    return sends_latents_ &&
           (is_communication(op.kind) || std::any_of(op.reads.begin(), op.reads.end(), moved) ||
            std::any_of(op.writes.begin(), op.writes.end(), moved));
  }

  void move_latents(operands& list) {
    for (auto& o : list) {
      if (o.what == tensor::k) o = latent_of(o);
    }
    std::erase_if(list, [](const operand& o) { return o.what == tensor::v; });
  }

  operand latent_of(operand o) {
    const auto [known, is_new] =
        latents_.try_emplace(o.buffer, static_cast<int>(s_.buffers.size()));
    if (is_new) {
      auto made = s_.buffers[static_cast<std::size_t>(o.buffer)];
      made.what = tensor::latent;
      made.resident = is_home(o);
      s_.buffers.push_back(made);
    }
    o.buffer = known->second;
    o.what = tensor::latent;
    return o;
  }

  operand expansion() {
    if (expansion_ < 0) {
      expansion_ = static_cast<int>(s_.buffers.size());
      s_.buffers.push_back({.what = tensor::expansion, .resident = true});
    }
    return {.buffer = expansion_, .what = tensor::expansion};
  }

  bool has_latents(const operand& o) const {
    return is_moved(o) || (own_ == own_keys::latents && is_home(o));
  }

  void expand_for(const operation& reader) {
    const auto& k = find(reader.reads, tensor::k);
    if (!has_latents(k) || expanded_.has(s_, k)) return;
    s_.program.push_back({.kind = op_kind::expand,
                          .reads = {latent_of(k), expansion()},
                          .writes = {k, find(reader.reads, tensor::v)}});
    expanded_.add(s_, k);
  }

  void keep_latents_only() {
    for (const auto& o : starts_with_) {
      if (is_expanded(o.what)) s_.buffers[static_cast<std::size_t>(o.buffer)].resident = false;
    }
  }

  schedule s_;
  operands starts_with_;
  own_keys own_;
  bool sends_latents_ = false;
  std::vector<operation> program_;
  std::vector<bool> moved_;     ///< by buffer
  std::map<int, int> latents_;  ///< by the buffer of their keys
  slot_set expanded_;           ///< of keys
  int expansion_ = -1;
};

}  // namespace

schedule with_latent_keys(schedule s, key_form sent, own_keys own) {
  return with_latents(std::move(s), sent, own).run();
}

}  // namespace attnsim
