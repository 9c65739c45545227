// Work that no change of the program touches and that costs what the program's own does: many small allocations, ordered and
// hashed lookups far apart in memory, sorting, arithmetic. See doubling.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

int main() {
  std::mt19937_64 draw(1);
  double sum = 0;
  for (int round = 0; round < 4; ++round) {
    std::map<std::uint64_t, std::unique_ptr<std::vector<double>>> series;
    std::unordered_map<std::string, std::size_t> names;
    for (int i = 0; i < 20000; ++i) {
      auto& one = series[draw()];
      one = std::make_unique<std::vector<double>>();
      for (int k = 0; k < 8; ++k) one->push_back(std::sqrt(static_cast<double>(draw() >> 11)));
      names.emplace("series " + std::to_string(i), one->size());
    }
    std::vector<double> all;
    for (auto& [key, one] : series) {
      std::sort(one->begin(), one->end());
      all.insert(all.end(), one->begin(), one->end());
      sum += static_cast<double>(names.count("series " + std::to_string(key % 40000)));
    }
    std::sort(all.begin(), all.end());
    sum += all[all.size() / 2];
  }
  std::printf("%g\n", sum);
}
