// A channel of a host_transport: each operation is one host function in stream order.
#pragma once

#include "validate/transports/host_transport.hpp"

namespace attnsim::validate {

class host_channel final : public channel {
 public:
  host_channel(host_transport&, kernels::backend&, kernels::stream_id, int lane,
               std::vector<int> group);

  void send_receive(const std::string& what, int to, int from, std::span<const payload>) override;
  void all_gather(const std::string& what, std::span<const payload>) override;
  void reduce_scatter(const std::string& what, std::span<const payload>) override;
  void all_to_all(const std::string& what, std::span<const payload>) override;
  void all_reduce(const std::string& what, std::span<const payload>) override;

 private:
  using payloads = std::vector<payload>;

  void run_send_receive(const std::string& what, int to, int from, const payloads&);
  void run_all_gather(const std::string& what, const payloads&);
  void run_reduce_scatter(const std::string& what, const payloads&);
  void run_all_to_all(const std::string& what, const payloads&);
  void run_all_reduce(const std::string& what, const payloads&);

  int members() const { return static_cast<int>(group_.size()); }
  /// The member `distance` further round the ring, as a place.
  int around(int distance) const;
  int rank_at(int place) const { return group_[static_cast<std::size_t>(place)]; }

  host_transport& transport_;
  kernels::backend& device_;
  kernels::stream_id stream_;
  int lane_;
  std::vector<int> group_;
  int place_;
};

}  // namespace attnsim::validate
