// What a sweep runs over, read from YAML: every key of the file with one value or a list of values. A point has one
// value a key; the points are all combinations, the last key of the file changing fastest.
//
//   cluster: nd-h100-v5
//   seq: [128K, 1M]
//   nics.bandwidth: [200 Gb/s, 400 Gb/s]
//   points:                                     # keys that change together: one map each,
//     - {schedule: ring}                        # its values lists again if need be
//     - {schedule: attention2d, grid: [8x8, 4x16]}
//
// has 2 x 2 x (1 + 2) points. What the keys mean is the caller's business.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnsim::sweep {

struct setting {
  std::string key;
  std::string value;  ///< as written
  std::string where;  ///< for messages: "sweep.yaml:3: seq[1]"
};

/// Indices into `settings`, in the order of the file.
using point = std::vector<std::uint32_t>;

struct spec {
  std::string file;
  std::vector<std::string> keys;  ///< of all points, in the order of the file
  std::vector<setting> settings;
  std::vector<point> points;

  /// The value of each of `keys`, empty where the point has none.
  std::vector<std::string> values_of(const point&) const;
};

/// `name` stands for the file in messages. Throws input_error for what is not YAML, a value that is neither single nor a
/// list of such, a key given twice for one point, an empty list, over ten million points.
spec parse_spec(const std::string& text, const std::string& name);

}  // namespace attnsim::sweep
