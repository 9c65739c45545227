#include "sim/symmetry.hpp"

#include <bit>
#include <unordered_map>

#include "sim/link_use.hpp"
#include "sim/parallel.hpp"

namespace attnsim {
namespace {

using colour = std::uint64_t;

/// splitmix64's finaliser over a running combination.
constexpr colour mix(colour seed, colour value) {
  colour x = seed * 0x9e3779b97f4a7c15ull + value + 0x632be59bd9b4e019ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

colour bits(double value) {
  return std::bit_cast<colour>(value);
}

/// Refinement that has not settled after this many rounds would end in classes of few members: not worth it.
constexpr int most_rounds = 256;

class refinement {
 public:
  explicit refinement(const placed_schedule& i)
      : placed_(i), flows_(static_cast<std::size_t>(i.communication().patterns())) {
    colour_ranks();
    colour_flows();
    colour_links();
  }

  /// False when it did not settle or found too little symmetry to use.
  bool settle() {
    if (mostly_distinct()) return false;
    std::size_t classes = 0;
    for (int round = 0; round < most_rounds; ++round) {
      const auto now = count();
      if (now == classes) return true;
      if (mostly_distinct()) return false;
      classes = now;
      refine();
    }
    return false;
  }

  const std::vector<colour>& ranks() const { return ranks_; }
  const std::vector<colour>& flows(std::size_t pattern) const { return flows_[pattern]; }
  const std::vector<colour>& links() const { return links_; }

 private:
  const transfers& communication() const { return placed_.communication(); }

  /// How many there are: a table that is at most half full, where the next free place takes what finds its own taken.
  static std::size_t distinct(const std::vector<colour>& colours) {
    std::vector<colour> table(std::bit_ceil(2 * colours.size() + 1));
    const auto last = table.size() - 1;
    std::size_t found = 0;
    bool zero = false;
    for (const auto c : colours) {
      if (c == 0) {
        zero = true;
        continue;
      }
      auto place = static_cast<std::size_t>(c) & last;
      while (table[place] != 0 && table[place] != c) place = (place + 1) & last;
      if (table[place] == c) continue;
      table[place] = c;
      ++found;
    }
    return found + zero;
  }

  bool mostly_distinct() const { return distinct(ranks_) * 2 > ranks_.size(); }

  std::size_t count() const {
    std::size_t total = distinct(ranks_) + distinct(links_);
    for (const auto& f : flows_) total += distinct(f);
    return total;
  }

  /// By how fast they are and what they compute, as far as ranks can differ in it. Stops where most differ already.
  void colour_ranks() {
    ranks_.reserve(static_cast<std::size_t>(placed_.ranks()));
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      ranks_.push_back(bits(placed_.speed_of(rank)));
    }
    const auto& program = placed_.program().program;
    for (std::size_t op = 0; op < program.size() && !placed_.same_on_all_ranks(); ++op) {
      const bool can_differ = is_kernel(program[op].kind) || !placed_.is_as_modelled();
      if (is_communication(program[op].kind) || !can_differ) continue;
      placed_.costs().find_on_all_ranks(op, parallel_for);
      for (int rank = 0; rank < placed_.ranks(); ++rank) {
        auto& c = ranks_[static_cast<std::size_t>(rank)];
        c = mix(c, bits(placed_.local_time(op, rank).value()));
        if (is_kernel(program[op].kind)) {
          c = mix(c, bits(placed_.costs().parts(op, rank)));
        }
      }
      if (std::has_single_bit(op) && mostly_distinct()) return;
    }
  }

  void colour_flows() {
    for (std::size_t p = 0; p < flows_.size(); ++p) {
      const int flows = communication().flows(static_cast<int>(p));
      flows_[p].reserve(static_cast<std::size_t>(flows));
      for (int f = 0; f < flows; ++f) {
        const auto form = communication().form(static_cast<int>(p), f);
        flows_[p].push_back(
            mix(mix(mix(p, bits(form.latency.fixed.value())), bits(form.rate_limit)),
                bits(form.share)));
      }
    }
  }

  void colour_links() {
    const auto links = placed_.on().network.links();
    links_.assign(links.size(), 0);
    for (std::size_t p = 0; p < flows_.size(); ++p) {
      for (int f = 0; f < communication().flows(static_cast<int>(p)); ++f) {
        for (const auto& use : communication().form(static_cast<int>(p), f).uses) {
          links_[use.link] = bits(links[use.link].capacity.value());
        }
      }
    }
  }

  void refine() {
    auto links = links_;
    for (auto& l : links) l = mix(l, 1);
    auto ranks = ranks_;
    for (std::size_t p = 0; p < flows_.size(); ++p) {
      for (std::size_t f = 0; f < flows_[p].size(); ++f)
        refine_flow(static_cast<int>(p), static_cast<int>(f), links);
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank] =
            mix(ranks[rank],
                colour_of(p, communication().sent(static_cast<int>(p), static_cast<int>(rank))));
        ranks[rank] = mix(
            ranks[rank],
            colour_of(p, communication().received(static_cast<int>(p), static_cast<int>(rank))));
      }
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links_[i] != 0) links_[i] = links[i];
    }
    ranks_ = std::move(ranks);
  }

  colour colour_of(std::size_t pattern, int flow) const {
    return flow < 0 ? 0 : flows_[pattern][static_cast<std::size_t>(flow)];
  }

  void refine_flow(int p, int f, std::vector<colour>& links) {
    auto& c = flows_[static_cast<std::size_t>(p)][static_cast<std::size_t>(f)];
    const auto members = communication().members(p, f);
    const bool ordered =
        members.size() == 2;  // sender and receiver differ, a group's members do not
    colour together = 0;
    for (const int member : members) {
      const auto m = ranks_[static_cast<std::size_t>(member)];
      together = ordered ? mix(together, m) : together + mix(m, 2);
    }
    const auto uses = communication().form(p, f).uses;
    for (const auto& use : uses) together += mix(links_[use.link], bits(use.weight));
    c = mix(c, together);
    for (const auto& use : uses) links[use.link] += mix(c, bits(use.weight));
  }

  const placed_schedule& placed_;
  std::vector<colour> ranks_;
  std::vector<std::vector<colour>> flows_;
  std::vector<colour> links_;  ///< 0: unused
};

/// Numbers colours in order of their first member, or every member by itself.
struct numbering {
  std::vector<int> class_of;
  std::vector<int> first_of;

  numbering(const std::vector<colour>& colours, bool merge, bool skip_zero = false) {
    std::unordered_map<colour, int> number;
    class_of.reserve(colours.size());
    if (!merge) first_of.reserve(colours.size());
    for (std::size_t i = 0; i < colours.size(); ++i) {
      if (skip_zero && colours[i] == 0) {
        class_of.push_back(-1);
        continue;
      }
      const auto next = static_cast<int>(first_of.size());
      const int found = merge ? number.try_emplace(colours[i], next).first->second : next;
      if (found == next) first_of.push_back(static_cast<int>(i));
      class_of.push_back(found);
    }
  }
};

/// The weights that each class of flows puts on one link of each class.
void sum_uses(const placed_schedule& i, symmetry& s) {
  const auto& t = i.communication();
  s.uses.resize(static_cast<std::size_t>(t.patterns()));
  for (int p = 0; p < t.patterns(); ++p) {
    auto& uses = s.uses[static_cast<std::size_t>(p)];
    const auto& classes = s.flow_class[static_cast<std::size_t>(p)];
    uses.resize(s.flow_of_class[static_cast<std::size_t>(p)].size());
    for (int f = 0; f < t.flows(p); ++f) {
      const auto form = t.form(p, f);
      auto& of_class = uses[static_cast<std::size_t>(classes[static_cast<std::size_t>(f)])];
      for (const auto& use : form.uses) {
        const int c = s.link_class[use.link];
        if (s.link_of_class[static_cast<std::size_t>(c)] == use.link)
          of_class.push_back({static_cast<std::uint32_t>(c), use.weight * form.share});
      }
    }
    for (auto& of_class : uses) merge_uses(of_class);
  }
}

}  // namespace

symmetry find_symmetry(const placed_schedule& i, bool merge) {
  refinement colours(i);
  const bool use = merge && colours.settle();

  symmetry s;
  const numbering ranks(colours.ranks(), use);
  s.rank_class = ranks.class_of;
  s.rank_of_class = ranks.first_of;
  for (int p = 0; p < i.communication().patterns(); ++p) {
    const numbering flows(colours.flows(static_cast<std::size_t>(p)), use);
    s.flow_class.push_back(flows.class_of);
    s.flow_of_class.push_back(flows.first_of);
  }
  const numbering links(colours.links(), use, true);
  s.link_class = links.class_of;
  s.link_of_class.assign(links.first_of.begin(), links.first_of.end());
  s.links_in_class.assign(links.first_of.size(), 0);
  for (const int c : s.link_class) {
    if (c >= 0) ++s.links_in_class[static_cast<std::size_t>(c)];
  }
  sum_uses(i, s);
  return s;
}

}  // namespace attnsim
