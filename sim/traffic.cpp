#include "sim/traffic.hpp"

#include <algorithm>

namespace attnsim {
namespace {

joined_links join_classes(const placed_schedule& i, const symmetry& s,
                          const std::vector<bool>& used_patterns) {
  std::vector<double> capacities;
  capacities.reserve(s.link_of_class.size());
  for (const auto id : s.link_of_class) {
    capacities.push_back(i.on().network.links()[id].capacity.value());
  }
  std::vector<std::vector<link_use>> routes;
  for (std::size_t p = 0; p < s.uses.size(); ++p) {
    if (used_patterns[p]) routes.insert(routes.end(), s.uses[p].begin(), s.uses[p].end());
  }
  return join_links(capacities, routes);
}

/// Those that have messages before the last ones (last_messages.hpp).
std::vector<bool> used_lanes(const stream_programs& programs) {
  std::vector<bool> used(programs.lanes.size());
  for (const auto& stream : programs.streams) {
    for (const auto& op : stream) {
      for (int l = op.lane; op.lane >= 0 && l < op.lane + op.lanes; ++l)
        used[static_cast<std::size_t>(l)] = true;
    }
  }
  return used;
}

std::vector<bool> used_patterns(const placed_schedule& i, const stream_programs& programs) {
  const auto lanes = used_lanes(programs);
  std::vector<bool> used(static_cast<std::size_t>(i.communication().patterns()));
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    if (lanes[l]) used[static_cast<std::size_t>(programs.lanes[l].pattern)] = true;
  }
  return used;
}

}  // namespace

traffic::traffic(const placed_schedule& i, const symmetry& s, const stream_programs& programs,
                 bool record)
    : placed_(i),
      symmetry_(s),
      rank_classes_(s.rank_of_class.size()),
      links_(join_classes(i, s, used_patterns(i, programs))),
      network_(links_.capacities) {
  add_routes(used_patterns(i, programs));
  const auto used = used_lanes(programs);
  ends_.reserve(used.size() * rank_classes_);
  for (std::size_t l = 0; l < used.size(); ++l) {
    if (used[l])
      add_lane(programs.lanes[l]);
    else
      ends_.resize(ends_.size() + rank_classes_);
  }
  events_.resize(flows_.size() + routes_.size());
  if (record) {
    for (link_id l = 0; l < links_.capacities.size(); ++l) network_.record(l);
  } else {
    find_private_routes();
  }
}

void traffic::add_routes(const std::vector<bool>& used_patterns) {
  routes_.reserve(links_.routes.size());
  for (const auto& uses : links_.routes) {
    double rate = unlimited;
    for (const auto& use : uses) rate = std::min(rate, links_.capacities[use.link] / use.weight);
    routes_.push_back({.path = network_.add_path(uses), .alone = private_route(rate)});
  }
  std::uint32_t first = 0;
  for (std::size_t p = 0; p < symmetry_.uses.size(); ++p) {
    first_route_.push_back(first);
    if (used_patterns[p]) first += static_cast<std::uint32_t>(symmetry_.uses[p].size());
  }
}

void traffic::add_lane(const lane& l) {
  const auto first = static_cast<flow_number>(flows_.size());
  const auto& classes = symmetry_.flow_class[static_cast<std::size_t>(l.pattern)];
  const auto number_of = [&](int f) {
    return f < 0 ? no_flow : first + static_cast<flow_number>(classes[static_cast<std::size_t>(f)]);
  };
  for (const int rank : symmetry_.rank_of_class) {
    const auto sent = number_of(placed_.communication().sent(l.pattern, rank));
    const auto received = number_of(placed_.communication().received(l.pattern, rank));
    ends_.push_back({sent, received == sent ? no_flow : received});
  }
  const auto count = symmetry_.flow_of_class[static_cast<std::size_t>(l.pattern)].size();
  for (std::size_t c = 0; c < count; ++c) add_flow(l, c);
}

void traffic::add_flow(const lane& l, std::size_t flow_class) {
  const auto p = static_cast<std::size_t>(l.pattern);
  const int representative = symmetry_.flow_of_class[p][flow_class];
  flow f{.route = first_route_[p] + static_cast<std::uint32_t>(flow_class),
         .stream = l.stream,
         .first_member = static_cast<std::uint32_t>(members_.size())};
  const auto form = placed_.communication().form(l.pattern, representative);
  f.latency = form.latency;
  f.share = form.share;
  f.rate_limit = form.rate_limit / form.share;
  for (const int member : placed_.communication().members(l.pattern, representative)) {
    members_.push_back(
        static_cast<std::uint32_t>(symmetry_.rank_class[static_cast<std::size_t>(member)]));
  }
  const auto first = members_.begin() + f.first_member;
  if (form.run_ahead > 0) {
    f.connection = static_cast<std::uint32_t>(connections_.size());
    connections_.emplace_back(form.run_ahead);
  } else {
    std::sort(first, members_.end());
  }
  members_.erase(std::unique(first, members_.end()), members_.end());
  f.members = f.missing = f.waiting = static_cast<std::uint32_t>(members_.size()) - f.first_member;
  flows_.push_back(f);
  routes_[f.route].alone.limit(f.rate_limit);
  ++routes_[f.route].flows;
}

void traffic::find_private_routes() {
  std::vector<int> routes_on(links_.capacities.size());
  for (const auto& uses : links_.routes) {
    for (const auto& use : uses) ++routes_on[use.link];
  }
  for (std::size_t r = 0; r < routes_.size(); ++r) {
    const auto& uses = links_.routes[r];
    routes_[r].is_private = std::all_of(uses.begin(), uses.end(),
                                        [&](const auto& use) { return routes_on[use.link] == 1; });
  }
}

bool traffic::arrive(picoseconds now, flow_number number, std::uint32_t rank_class,
                     const message& m) {
  flow& f = flows_[number];
  const auto latency = [&] {
    return m.latency_of ? to_picoseconds(f.latency.of(*m.latency_of).value()) : 0;
  };
  if (f.connection == no_connection) {
    if (--f.missing > 0) return true;
    f.missing = f.members;
    f.bytes = m.bytes / f.share;
    begin(later(now, latency()), number);
    return true;
  }
  auto& c = connections_[f.connection];
  const auto members = std::span(members_).subspan(f.first_member, f.members);
  const bool sends = members.front() == rank_class;
  if (sends) c.send(m.bytes, latency());
  const bool is_there = members.back() == rank_class && c.receive(m.bytes);
  begin_part(now, number);
  return !is_there;
}

/// It starts then.
void traffic::begin(picoseconds time, flow_number number) {
  const route& r = routes_[flows_[number].route];
  if (r.is_private && r.flows == 1) {
    start(time, number);
  } else {
    events_.set(number, {time, false});
  }
}

void traffic::begin_part(picoseconds now, flow_number number) {
  flow& f = flows_[number];
  if (const auto part = connections_[f.connection].begin()) {
    f.bytes = part->bytes / f.share;
    begin(later(now, part->latency), number);
  }
}

/// What has moved was not all of the message.
bool traffic::goes_on(picoseconds now, flow_number number) {
  flow& f = flows_[number];
  if (f.connection == no_connection) return false;
  auto& c = connections_[f.connection];
  if (c.end()) {
    f.waiting = c.is_awaited() ? f.members : 1;
    return false;
  }
  begin_part(now, number);
  return true;
}

void traffic::start(picoseconds now, flow_number number) {
  const flow& f = flows_[number];
  route& r = routes_[f.route];
  if (!r.is_private) return network_.start(now, number, r.path, f.bytes, f.rate_limit);
  r.alone.start(now, number, f.bytes);
  events_.set(event_of(f.route), {r.alone.next_completion(), true});
}

void traffic::complete(picoseconds now, std::uint32_t number) {
  auto& r = routes_[number].alone;
  r.complete(now, done_);
  if (r.next_completion() == never) {
    events_.erase(event_of(number));
  } else {
    events_.set(event_of(number), {r.next_completion(), true});
  }
}

picoseconds traffic::next() {
  const auto next = events_.empty() ? never : events_.top_key().first;
  return network_.flows() == 0 ? next : std::min(next, network_.next_completion());
}

const std::vector<flow_tag>& traffic::advance(picoseconds now) {
  done_.clear();
  if (network_.flows() > 0 && network_.next_completion() == now) network_.complete(now, done_);
  while (!events_.empty() && events_.top_key().first == now) {
    const auto event = events_.top();
    if (event >= flows_.size()) {
      complete(now, event - static_cast<std::uint32_t>(flows_.size()));
    } else {
      events_.erase(event);
      start(now, event);
    }
  }
  if (!connections_.empty()) {
    std::erase_if(done_, [&](auto tag) { return goes_on(now, static_cast<flow_number>(tag)); });
  }
  return done_;
}

std::vector<double> traffic::bytes_carried(picoseconds now) {
  auto joined = network_.bytes_carried(now);
  for (std::size_t r = 0; r < routes_.size(); ++r) {
    for (const auto& use : links_.routes[r]) {
      joined[use.link] += use.weight * routes_[r].alone.moved();
    }
  }
  std::vector<double> bytes;
  for (const auto number : links_.number_of) bytes.push_back(joined[number]);
  return bytes;
}

}  // namespace attnsim
