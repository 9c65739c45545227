#include "model/cost/known_schedules.hpp"

#include <algorithm>

#include "model/schedule/algorithms/schedules.hpp"

namespace attnsim {

known_schedule known_schedules::of(const device& on, const attention& a, strategy s,
                                   pass_kind pass) {
  constexpr std::size_t most_places = std::size_t{1} << 22;  // operations x ranks, some 100 MiB
  s.placement.clear();
  const auto found = find(on, a, s, pass, nullptr);
  if (found != entries_.end()) return found->known;
  auto program = make_schedule(s, a, pass);
  const auto alike = s.block_cost == 0 ? entries_.end() : find(on, a, s, pass, &program);
  if (alike != entries_.end()) {
    alike->chosen.block_cost = s.block_cost;
    return alike->known;
  }
  auto priced = std::make_shared<const priced_schedule>(*on, a, s, std::move(program));
  entries_.push_front({on, a, std::move(s), pass, known_schedule(std::move(priced))});
  places_ += entries_.front().places();
  for (; places_ > most_places && entries_.size() > 1; entries_.pop_back())
    places_ -= entries_.back().places();
  return entries_.front().known;
}

/// With a program, of any cost of a block with which it is the same.
auto known_schedules::find(const device& on, const attention& a, const strategy& s, pass_kind pass,
                           const schedule* program) -> std::list<entry>::iterator {
  const auto is_same = [&](const strategy& other) {
    if (program == nullptr) return other == s;
    auto weighed = other;
    weighed.block_cost = s.block_cost;
    return weighed == s;
  };
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const entry& one) {
    return one.on == on && one.pass == pass && one.problem == a && is_same(one.chosen) &&
           (program == nullptr || one.known.priced->program() == *program);
  });
  if (found != entries_.end()) entries_.splice(entries_.begin(), entries_, found);
  return found;
}

std::size_t known_schedules::entry::places() const {
  const auto& program = known.priced->program();
  return program.program.size() * static_cast<std::size_t>(program.grid.ranks());
}

}  // namespace attnsim
