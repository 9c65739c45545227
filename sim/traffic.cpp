#include "sim/traffic.hpp"

#include <algorithm>

namespace attnsim {

traffic::traffic(const instance& i, const symmetry& s, const stream_programs& programs, bool record)
    : instance_(i),
      symmetry_(s),
      rank_classes_(s.rank_of_class.size()),
      network_(class_capacities()),
      paths_(s.uses.size()) {
  for (std::size_t p = 0; p < paths_.size(); ++p) {
    for (const auto& path : s.uses[p]) paths_[p].push_back(network_.add_path(path));
  }
  for (const lane& l : programs.lanes) add_lane(l);
  waiting_.resize(flows_.size());
  if (record) {
    for (link_id l = 0; l < s.link_of_class.size(); ++l) network_.record(l);
  } else {
    find_undisturbed();
  }
}

std::vector<double> traffic::class_capacities() const {
  std::vector<double> capacities;
  for (const auto id : symmetry_.link_of_class) {
    capacities.push_back(instance_.on().network.links()[id].capacity.value());
  }
  return capacities;
}

const std::vector<link_use>& traffic::uses(const lane& l, std::size_t flow_class) const {
  return symmetry_.uses[static_cast<std::size_t>(l.pattern)][flow_class];
}

void traffic::add_lane(const lane& l) {
  const auto first = static_cast<flow_number>(flows_.size());
  const auto& classes = symmetry_.flow_class[static_cast<std::size_t>(l.pattern)];
  const auto number_of = [&](int f) {
    return f < 0 ? no_flow : first + static_cast<flow_number>(classes[static_cast<std::size_t>(f)]);
  };
  for (const int rank : symmetry_.rank_of_class) {
    const auto sent = number_of(instance_.communication().sent(l.pattern, rank));
    const auto received = number_of(instance_.communication().received(l.pattern, rank));
    ends_.push_back({sent, received == sent ? no_flow : received});
  }
  const auto count = symmetry_.flow_of_class[static_cast<std::size_t>(l.pattern)].size();
  for (std::size_t c = 0; c < count; ++c) add_flow(l, c);
}

void traffic::add_flow(const lane& l, std::size_t flow_class) {
  const auto p = static_cast<std::size_t>(l.pattern);
  const int representative = symmetry_.flow_of_class[p][flow_class];
  flow f{.path = paths_[p][flow_class],
         .stream = l.stream,
         .first_member = static_cast<std::uint32_t>(members_.size())};
  f.latency =
      to_picoseconds(instance_.communication().form(l.pattern, representative).latency.value());
  for (const int member : instance_.communication().members(l.pattern, representative)) {
    members_.push_back(
        static_cast<std::uint32_t>(symmetry_.rank_class[static_cast<std::size_t>(member)]));
  }
  const auto first = members_.begin() + f.first_member;
  std::sort(first, members_.end());
  members_.erase(std::unique(first, members_.end()), members_.end());
  f.members = f.missing = static_cast<std::uint32_t>(members_.size()) - f.first_member;
  flows_.push_back(f);
  uses_.push_back(&uses(l, flow_class));
}

void traffic::find_undisturbed() {
  std::vector<int> users(symmetry_.link_of_class.size());
  for (const auto* path : uses_) {
    for (const auto& use : *path) ++users[use.link];
  }
  const auto capacities = class_capacities();
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    const auto& path = *uses_[f];
    flows_[f].undisturbed = std::all_of(path.begin(), path.end(),
                                        [&](const auto& use) { return users[use.link] == 1; });
    flows_[f].rate = unlimited;
    for (const auto& use : path) {
      flows_[f].rate = std::min(flows_[f].rate, capacities[use.link] / use.weight);
    }
  }
}

void traffic::arrive(picoseconds now, flow_number number, double bytes) {
  flow& f = flows_[number];
  if (--f.missing > 0) return;
  f.missing = f.members;
  f.bytes = bytes;
  const auto transfer = f.undisturbed ? to_picoseconds(bytes / f.rate) : 0;
  waiting_.set(number, now + f.latency + transfer);
}

picoseconds traffic::next() {
  const auto waiting = waiting_.empty() ? never : waiting_.top_key();
  return network_.flows() == 0 ? waiting : std::min(waiting, network_.next_completion());
}

const std::vector<flow_tag>& traffic::advance(picoseconds now) {
  done_.clear();
  if (network_.flows() > 0 && network_.next_completion() == now) network_.complete(now, done_);
  while (!waiting_.empty() && waiting_.top_key() == now) {
    const auto number = waiting_.top();
    waiting_.erase(number);
    flow& f = flows_[number];
    if (f.undisturbed) {
      f.moved += f.bytes;
      done_.push_back(number);
    } else {
      network_.start(now, number, f.path, f.bytes);
    }
  }
  return done_;
}

std::vector<double> traffic::bytes_carried(picoseconds now) {
  auto bytes = network_.bytes_carried(now);
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    for (const auto& use : *uses_[f]) bytes[use.link] += use.weight * flows_[f].moved;
  }
  return bytes;
}

}  // namespace attnsim
