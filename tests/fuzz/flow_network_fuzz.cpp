// Decodes bytes into a network and a sequence of starts and waits, and compares every rate,
// completion and byte count with the plain solver. Numbers are drawn from few values, so that ties
// are common.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "tests/sim/checked_network.hpp"

namespace attnsim {
namespace {

class byte_source {
 public:
  explicit byte_source(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint8_t next() {
    if (empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  std::uint32_t below(std::uint32_t n) { return next() % n; }
  /// One to three times the scale, or an odd number from a hundredth to a hundred times it.
  double number(double scale) {
    const std::uint8_t byte = next();
    if (byte < 128) return scale * (1 + byte % 3);
    return scale * (byte < 200 ? 0.01 : 0.4) * (byte + next() / 256.0);
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

std::vector<link_use> path(byte_source& in, std::uint32_t links) {
  std::vector<link_use> path;
  for (std::uint32_t hops = in.below(in.below(4) ? 6 : 30); hops > 0; --hops) {
    const std::uint32_t link = in.below(links);
    path.push_back({link, in.below(2) ? 1 : in.number(0.5)});
  }
  return path;
}

void run(byte_source in) {
  const std::uint32_t links = 1 + in.below(14);
  std::vector<double> capacities;
  for (std::uint32_t i = 0; i < links; ++i) capacities.push_back(in.number(1e9));
  checked_network network(capacities);
  const std::uint32_t paths = 1 + in.below(16);
  for (std::uint32_t i = 0; i < paths; ++i) network.add_path(path(in, links));

  while (!in.empty() || network.flows() > 0) {
    const std::uint32_t action = in.below(8);
    if (!in.empty() && action < 5 && network.flows() < 100) {
      const path_id on = in.below(paths);
      const double bytes = in.below(16) == 0 ? 0 : in.number(1000);
      network.start(on, bytes, in.below(5) == 0 ? in.number(2.5e8) : unlimited);
    } else if (action == 5) {
      network.go(1000 * in.next());
    } else {
      network.go();
    }
    if (network.difference().empty()) continue;
    std::fprintf(stderr, "%s\n", network.difference().c_str());
    std::abort();
  }
}

}  // namespace
}  // namespace attnsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attnsim::run(attnsim::byte_source({data, size}));
  return 0;
}
