// How fast the network simulates the traffic of context parallelism, without a schedule around it.
// The star has a private 50e9 B/s up and down link per host; link i is host i's up link, hosts + i
// its down link.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sim/flow_network.hpp"

namespace attnsim {
namespace {

constexpr double mib = 1024.0 * 1024.0;
constexpr double link_rate = 50e9;

struct star {
  std::uint32_t hosts;
  flow_network network{std::vector<double>(2 * hosts, link_rate)};

  path_id connect(std::uint32_t from, std::uint32_t to) {
    const link_use path[] = {{from}, {hosts + to}};
    return network.add_path(path);
  }
};

picoseconds drain(flow_network& network) {
  std::vector<flow_tag> done;
  picoseconds last = 0;
  for (picoseconds next; (next = network.next_completion()) != never; last = next) {
    done.clear();
    network.complete(next, done);
  }
  return last;
}

void all_to_all(benchmark::State& state, bool jitter) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  picoseconds end = 0;
  for (auto _ : state) {
    star s{hosts};
    for (std::uint32_t i = 0; i < hosts; ++i) {
      for (std::uint32_t d = 1; d < hosts; ++d) {
        const double factor = jitter ? 1 + ((i * 7919 + d * 104729) % 1000) / 1000.0 : 1;
        s.network.start(0, i * hosts + d, s.connect(i, (i + d) % hosts), mib * factor);
      }
    }
    end = drain(s.network);
  }
  state.counters["simulated_s"] = to_seconds(end);
  state.SetItemsProcessed(state.iterations() * hosts * (hosts - 1));
}

void all_to_all_equal(benchmark::State& state) {
  all_to_all(state, false);
}
void all_to_all_unequal(benchmark::State& state) {
  all_to_all(state, true);
}
BENCHMARK(all_to_all_equal)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(all_to_all_unequal)->Arg(64)->Arg(128)->Arg(256)->Unit(benchmark::kMillisecond);

// Every host sends 64 MiB to its neighbour; all wait for all before the next step.
void ring_in_lock_step(benchmark::State& state) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  const auto gap = static_cast<picoseconds>(state.range(1));
  picoseconds now = 0;
  for (auto _ : state) {
    star s{hosts};
    std::vector<path_id> paths;
    for (std::uint32_t i = 0; i < hosts; ++i) paths.push_back(s.connect(i, (i + 1) % hosts));
    std::vector<flow_tag> done;
    now = 0;
    for (std::uint32_t step = 1; step < hosts; ++step) {
      for (std::uint32_t i = 0; i < hosts; ++i) s.network.start(now, i, paths[i], 64 * mib);
      done.clear();
      now = s.network.next_completion();
      s.network.complete(now, done);
      if (done.size() != hosts) state.SkipWithError("not in lock-step");
      if (s.network.next_completion() != never) state.SkipWithError("flows left");
      now += gap;
    }
  }
  state.counters["simulated_s"] = to_seconds(now);
  state.SetItemsProcessed(state.iterations() * hosts * (hosts - 1));
}
BENCHMARK(ring_in_lock_step)
    ->Args({1024, 0})
    ->Args({1024, 2'000'000})
    ->Unit(benchmark::kMillisecond);

// One flow after the other, alone on two links.
void lone_flow(benchmark::State& state) {
  star s{2};
  const path_id path = s.connect(0, 1);
  std::vector<flow_tag> done;
  picoseconds now = 0;
  for (auto _ : state) {
    done.clear();
    s.network.start(now, 0, path, 1000);
    now = s.network.next_completion();
    s.network.complete(now, done);
    benchmark::DoNotOptimize(s.network.next_completion());
    now += 1000;
  }
}
BENCHMARK(lone_flow);

// All hosts to one, all sizes different: one link shared by every flow.
void incast(benchmark::State& state) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    star s{hosts};
    for (std::uint32_t i = 1; i < hosts; ++i) s.network.start(0, i, s.connect(i, 0), 1000.0 * i);
    drain(s.network);
  }
  state.SetItemsProcessed(state.iterations() * (hosts - 1));
}
BENCHMARK(incast)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

// Many flows of different sizes on one path: one bundle.
void same_path(benchmark::State& state) {
  const auto flows = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    star s{2};
    const path_id path = s.connect(0, 1);
    for (std::uint32_t i = 0; i < flows; ++i) {
      s.network.start(0, i, path, 1000.0 * (1 + i * 7919u % flows));
    }
    drain(s.network);
  }
  state.SetItemsProcessed(state.iterations() * flows);
}
BENCHMARK(same_path)->Arg(100000)->Unit(benchmark::kMillisecond);

// A two-level fat tree of full bisection, 16 hosts a leaf, 16 spines, the spine chosen by
// destination: paths of four links (two within a leaf). Every host sends `fan` flows of different
// sizes, each followed by another when it ends.
void fat_tree(benchmark::State& state) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  const auto fan = static_cast<std::uint32_t>(state.range(1));
  constexpr std::uint32_t radix = 16;
  const std::uint32_t leaves = hosts / radix;
  const std::uint32_t rounds = 4;
  for (auto _ : state) {
    flow_network network(std::vector<double>(2 * hosts + 2 * leaves * radix, link_rate));
    const auto connect = [&](std::uint32_t from, std::uint32_t to) {
      const std::uint32_t spine = to % radix;
      const std::uint32_t up = 2 * hosts + from / radix * radix + spine;
      const std::uint32_t down = 2 * hosts + leaves * radix + to / radix * radix + spine;
      std::vector<link_use> path{{from}, {hosts + to}};
      if (from / radix != to / radix) path.insert(path.end(), {{up}, {down}});
      return network.add_path(path);
    };
    const auto start = [&](picoseconds now, flow_tag tag) {
      const auto i = static_cast<std::uint32_t>(tag / (fan * rounds));
      const auto k = static_cast<std::uint32_t>(tag % (fan * rounds));
      const std::uint32_t to = (i + 1 + (i * 31 + k * 7919) % (hosts - 1)) % hosts;
      network.start(now, tag, connect(i, to), mib * (1 + (i * 7919 + k * 104729) % 1000 / 1000.0));
    };
    for (std::uint32_t i = 0; i < hosts; ++i) {
      for (std::uint32_t f = 0; f < fan; ++f) start(0, (i * fan + f) * rounds);
    }
    std::vector<flow_tag> done;
    for (picoseconds now; (now = network.next_completion()) != never;) {
      done.clear();
      network.complete(now, done);
      for (const flow_tag tag : done) {
        if (tag % rounds + 1 < rounds) start(now, tag + 1);
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * hosts * fan * rounds);
}
BENCHMARK(fat_tree)->Args({256, 1})->Args({256, 8})->Args({1024, 2})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attnsim
