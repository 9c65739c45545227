// Priced schedules that many predictions have in common, each made once: wherever its ranks are placed, and whatever the links
// between them. The latest are kept.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "model/cost/memory.hpp"
#include "model/cost/priced_schedule.hpp"

namespace attnsim {

/// A schedule and what follows from it alone.
struct known_schedule {
  std::shared_ptr<const priced_schedule> priced;

  explicit known_schedule(std::shared_ptr<const priced_schedule> p) : priced(std::move(p)) {}

  /// Worked out when first asked for: nobody asks where schedules are only compared, and some layouts of tokens take long.
  const memory_use& memory() const {
    if (!*memory_) *memory_ = peak_memory(priced->work());
    return **memory_;
  }

 private:
  std::shared_ptr<std::optional<memory_use>> memory_ =
      std::make_shared<std::optional<memory_use>>();
};

/// Not for several threads at once.
class known_schedules {
 public:
  using device = std::shared_ptr<const device_profile>;

  /// Clusters that have one device share it. `s` is completed and informed (priced_schedule.hpp); its placement does not count,
  /// nor does what a block costs where it leads to the same program. Throws as make_schedule and priced_schedule do.
  known_schedule of(const device&, const attention&, strategy s, pass_kind);

 private:
  struct entry {
    device on;
    attention problem;
    strategy chosen;
    pass_kind pass;
    known_schedule known;

    std::size_t places() const;  ///< operations x ranks
  };

  std::list<entry>::iterator find(const device&, const attention&, const strategy&, pass_kind,
                                  const schedule* program);

  std::list<entry> entries_;  ///< the latest asked for first
  std::size_t places_ = 0;    ///< of all of them
};

}  // namespace attnsim
