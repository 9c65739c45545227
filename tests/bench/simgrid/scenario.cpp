// SimGrid's side of the comparison: the scenarios of tests/bench/scenario.hpp on its S4U interface.
// usage: scenario_simgrid ring|grid|all-to-all star|fat-tree|dragonfly HOSTS equal|unequal
//                         [LATENCY_US] [--cfg=...]
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>

#include "tests/bench/scenario.hpp"

namespace s4u = simgrid::s4u;

namespace {

constexpr double host_flops = 1e12;

struct platform {
  std::string kind;
  int hosts;
  double latency;
};

std::string host_name(unsigned long i) {
  return "host" + std::to_string(i);
}

void build_star(const platform& p) {
  auto* zone = s4u::create_star_zone("star");
  for (int i = 0; i < p.hosts; ++i) {
    const auto name = host_name(static_cast<unsigned long>(i));
    auto* host = zone->create_host(name, host_flops)->seal();
    auto* link = zone->create_split_duplex_link("link-" + name, scenario::link_bytes_per_s)
                     ->set_latency(p.latency)
                     ->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {{link, s4u::LinkInRoute::Direction::UP}}, true);
  }
  zone->seal();
}

void build(const platform& p) {
  const auto new_host = [](s4u::NetZone* zone, const std::vector<unsigned long>&,
                           unsigned long id) {
    auto* host = zone->create_host(host_name(id), host_flops)->seal();
    return std::pair(host->get_netpoint(),
                     static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  const s4u::ClusterCallbacks callbacks(new_host);
  const auto hosts = static_cast<unsigned>(p.hosts);
  constexpr auto both_ways = s4u::Link::SharingPolicy::SPLITDUPLEX;
  if (p.kind == "star") {
    build_star(p);
  } else if (p.kind == "fat-tree") {
    s4u::create_fatTree_zone(p.kind, nullptr, {2, {16, hosts / 16}, {1, 16}, {1, 1}}, callbacks,
                             scenario::link_bytes_per_s, p.latency, both_ways)
        ->seal();
  } else if (p.kind == "dragonfly") {
    s4u::create_dragonfly_zone(p.kind, nullptr, {{hosts / 64, 1}, {1, 1}, {16, 1}, 4}, callbacks,
                               scenario::link_bytes_per_s, p.latency, both_ways)
        ->seal();
  } else {
    throw std::invalid_argument(p.kind);
  }
}

/// Exchanges with the next and the last host of each ring, and computes, step by step.
void rank(std::vector<std::pair<std::string, std::string>> next_and_own, int me, int steps,
          bool compute) {
  static int token;
  for (int step = 0; step < steps; ++step) {
    std::vector<void*> received(next_and_own.size());
    std::vector<s4u::CommPtr> moving;
    for (std::size_t i = 0; i < next_and_own.size(); ++i) {
      const auto& [next, own] = next_and_own[i];
      moving.push_back(s4u::Mailbox::by_name(own)->get_async<void>(&received[i]));
      moving.push_back(s4u::Mailbox::by_name(next)->put_async(
          &token, static_cast<std::uint64_t>(scenario::ring_bytes)));
    }
    if (compute) {
      s4u::this_actor::execute(host_flops * scenario::compute_s * scenario::unequal(me, step));
    }
    for (const auto& m : moving) m->wait();
  }
}

void start_rings(s4u::Engine& engine, int rows, int cols, bool compute) {
  for (int i = 0; i < rows * cols; ++i) {
    const int row = i / cols, col = i % cols;
    std::vector<std::pair<std::string, std::string>> rings;
    const auto box = [](char axis, int host) { return axis + std::to_string(host); };
    if (rows > 1) rings.emplace_back(box('c', (row + 1) % rows * cols + col), box('c', i));
    if (cols > 1) rings.emplace_back(box('r', row * cols + (col + 1) % cols), box('r', i));
    s4u::Actor::create(box('a', i), engine.host_by_name(host_name(static_cast<unsigned long>(i))),
                       rank, rings, i, std::max(rows, cols) - 1, compute);
  }
}

void start_all_to_all(s4u::Engine& engine, int hosts, bool equal) {
  const auto host = [&](int i) {
    return engine.host_by_name(host_name(static_cast<unsigned long>(i)));
  };
  s4u::Actor::create("driver", host(0), [=] {
    std::vector<s4u::CommPtr> messages;
    for (int d = 1; d < hosts; ++d) {
      for (int i = 0; i < hosts; ++i) {
        const auto bytes = scenario::message_bytes_to(i, d, equal);
        messages.push_back(s4u::Comm::sendto_async(host(i), host((i + d) % hosts),
                                                   static_cast<std::uint64_t>(bytes)));
      }
    }
    for (const auto& m : messages) m->wait();
  });
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  if (argc < 5) return 2;
  const std::string traffic = argv[1];
  const platform p{argv[2], std::stoi(argv[3]),
                   argc > 5 ? std::stod(argv[5]) * 1e-6 : scenario::link_latency_s};
  const bool equal = argv[4] == std::string("equal");
  build(p);
  const double before = cpu_seconds();
  const int side = static_cast<int>(std::lround(std::sqrt(p.hosts)));
  if (traffic == "ring") start_rings(engine, p.hosts, 1, !equal);
  if (traffic == "grid") start_rings(engine, side, side, !equal);
  if (traffic == "all-to-all") start_all_to_all(engine, p.hosts, equal);
  engine.run();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"simulated_s\": %.12g, \"run_s\": %.6g, \"mib\": %.1f}\n",
              s4u::Engine::get_clock(), cpu_seconds() - before,
              static_cast<double>(usage.ru_maxrss) / 1024);
}
