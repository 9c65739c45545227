#include "sweep/spec.hpp"

#include <algorithm>

#include "model/config.hpp"

namespace attnsim::sweep {
namespace {

constexpr std::size_t most_points = 10'000'000;

class reader {
 public:
  spec read(const config_node& root) {
    result_.points = points_of(root);
    return std::move(result_);
  }

 private:
  /// All combinations of a map's values.
  std::vector<point> points_of(const config_node& map) {
    std::vector<point> points{{}};
    for (const auto& [key, node] : map.entries()) {
      points = product(points, key == "points" ? listed(node) : values(key, node), node);
    }
    return points;
  }

  std::vector<point> listed(const config_node& maps) {
    std::vector<point> points;
    for (const auto& map : maps.items()) {
      const auto more = points_of(map);
      points.insert(points.end(), more.begin(), more.end());
    }
    return points;
  }

  std::vector<point> values(const std::string& key, const config_node& node) {
    if (std::find(result_.keys.begin(), result_.keys.end(), key) == result_.keys.end())
      result_.keys.push_back(key);
    std::vector<point> points;
    for (const auto& item : node.is_sequence() ? node.items() : std::vector{node}) {
      points.push_back({static_cast<std::uint32_t>(result_.settings.size())});
      result_.settings.push_back({key, item.as<std::string>(), item.where()});
    }
    return points;
  }

  std::vector<point> product(const std::vector<point>& left, const std::vector<point>& right,
                             const config_node& node) const {
    if (right.empty()) node.fail("", "expected at least one value");
    if (left.size() > most_points / right.size())
      node.fail("", "expected at most 10,000,000 points");
    std::vector<point> all;
    all.reserve(left.size() * right.size());
    for (const auto& l : left) {
      for (const auto& r : right) {
        for (const auto known : l) {
          if (std::any_of(r.begin(), r.end(), [&](auto s) { return key(s) == key(known); }))
            node.fail("", "expected each key once for a point; given twice: " + key(known));
        }
        all.push_back(l);
        all.back().insert(all.back().end(), r.begin(), r.end());
      }
    }
    return all;
  }

  const std::string& key(std::uint32_t s) const { return result_.settings[s].key; }

  spec result_;
};

}  // namespace

std::vector<std::string> spec::values_of(const point& p) const {
  std::vector<std::string> values(keys.size());
  for (const auto s : p) {
    const auto at = std::find(keys.begin(), keys.end(), settings[s].key);
    values[static_cast<std::size_t>(at - keys.begin())] = settings[s].value;
  }
  return values;
}

spec parse_spec(const std::string& text, const std::string& name) {
  auto result = reader().read(config_node::parse_text(text, name));
  result.file = name;
  return result;
}

}  // namespace attnsim::sweep
