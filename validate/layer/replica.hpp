// The ranks of one data-parallel replica as a transport of their own: consecutive ranks of another, which all of its ranks use
// alike.
#pragma once

#include "validate/transport.hpp"

namespace attnsim::validate {

class replica final : public transport {
 public:
  /// Of so many ranks, this one among them. The transport is kept by reference.
  replica(transport& whole, int ranks) : whole_(whole), ranks_(ranks) {}

  std::string_view name() const override { return whole_.name(); }
  int rank() const override { return whole_.rank() - first(); }
  int ranks() const override { return ranks_; }
  int local_rank() const override { return whole_.local_rank(); }
  int local_ranks() const override { return whole_.local_ranks(); }

  std::unique_ptr<channel> open(kernels::backend& device, kernels::stream_id stream,
                                const std::vector<int>& group, int nccl_channels) override {
    auto members = group;
    for (auto& member : members) member += first();
    return whole_.open(device, stream, members, nccl_channels);
  }
  /// Of all replicas' ranks; those of this one are returned.
  std::vector<blob> share(const blob& own) override {
    const auto all = whole_.share(own);
    return {all.begin() + first(), all.begin() + first() + ranks_};
  }
  void watch(kernels::backend& device, kernels::stream_id stream,
             const std::string& what) override {
    whole_.watch(device, stream, what);
  }
  double clock_offset() override { return whole_.clock_offset(); }

 private:
  int first() const { return whole_.rank() / ranks_ * ranks_; }

  transport& whole_;
  int ranks_;
};

}  // namespace attnsim::validate
