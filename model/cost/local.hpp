// Time of the operations that stay on one device: attention kernels call by call, and the merges, sums and copies around
// them, which move memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "model/cost/kernel.hpp"
#include "model/cost/workload.hpp"

namespace attnsim {

class local_costs {
 public:
  /// References are kept. `kernel` may be null: roofline. `copy_rate`: framework_copies.hpp.
  local_costs(const workload&, const device_profile&, const kernel_profile* kernel, run_start,
              double copy_rate = 1);
  local_costs(const local_costs&) = delete;

  /// Time of program[op] on `rank`, on a device of full speed; 0 for communication and for attention that sees nothing.
  seconds time(std::size_t op, int rank) const;
  /// In how many equal parts an attention operation leaves multiprocessors to others in between on `rank`: its kernel
  /// calls, or their waves (kernel_parts).
  double parts(std::size_t op, int rank) const { return find(op, rank).parts; }
  /// Useful operations of program[op] on `rank`, and the kernel calls that do them.
  flop_count flops(std::size_t op, int rank) const { return find(op, rank).flops; }
  int calls(std::size_t op, int rank) const { return find(op, rank).calls; }
  /// What the host takes to launch these calls; zero: nobody measured it.
  seconds launches(std::size_t op, int rank) const { return find(op, rank).launches; }
  /// Of these calls, the least sure one's (kernel_uncertainty).
  double uncertainty(std::size_t op, int rank) const { return find(op, rank).uncertainty; }
  /// What moves memory in program[op], or brings its kernel calls' results to their place.
  const memory_calls& memory(std::size_t op, int rank) const { return find(op, rank).memory; }

  /// Runs a body for each of so many numbers, in any order or at once (sim/parallel.hpp).
  using number_loop =
      std::function<void(std::size_t, const std::function<void(std::size_t)>& body)>;
  /// Works out an attention operation's costs on all ranks beforehand, where there are many and each has its own: the same as when
  /// asked for one by one.
  void find_on_all_ranks(std::size_t op, const number_loop&) const;

  /// What the stream of `rank`'s program that computes longest computes: no run takes less.
  seconds longest_stream(int rank) const;

 private:
  struct cost {
    seconds time;
    flop_count flops;
    double parts = 0;
    int calls = 0;
    seconds launches;
    double uncertainty = 0;
    memory_calls memory;
    bool known = false;

    friend bool operator==(const cost&, const cost&) = default;
  };

  cost attention_cost(const operation&, int rank) const;
  cost cost_of(const operation&, int rank) const;
  seconds expansion_time(const operation&, int rank) const;
  const cost& find(std::size_t op, int rank) const;
  const cost& look_up(std::size_t op, int rank) const;
  const cost& of_rank(std::size_t op, int rank) const;
  bool has_room_for(std::size_t op) const;
  std::uint32_t number_of(const cost&) const;

  const workload& workload_;
  const device_profile& device_;
  const kernel_profile* kernel_;
  run_start start_;
  double copy_rate_;
  std::vector<std::size_t> form_;  ///< operations with the same costs share a form
  /// By operation and rank: where its cost is; null: not asked for yet. Empty where it would be large.
  mutable std::vector<const cost*> found_;
  mutable workload::known_blocks blocks_;
  /// By form and tile variant; filled on first use.
  mutable std::vector<cost> known_;
  /// Of an operation without variants, by rank: the number of its cost, from 1 on; 0: not asked for yet.
  mutable std::map<std::size_t, std::vector<std::uint32_t>> by_rank_;
  mutable std::deque<cost> numbered_;
  mutable cost latest_;  ///< the latest one where by_rank_ would be large, and whose it is
  mutable std::pair<std::size_t, int> latest_of_{};
};

}  // namespace attnsim
