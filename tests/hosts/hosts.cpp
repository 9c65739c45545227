#include "tests/hosts/hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "model/error.hpp"
#include "tests/hosts/scripts.hpp"

namespace attnsim::hosts {
namespace {

host_network buildable(const host_network& network) {
  check(network);
  if (const auto lack = emulated_hosts::missing(); !lack.empty()) throw std::runtime_error(lack);
  return network;
}

/// The fabric's end of a cable.
std::string port(const cable& cable) {
  return emulated_hosts::name(cable.host) + "-" + cable.interface;
}

/// Reads lines "7: h0-rail0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu ..." of `ip -o link show`.
bool is_down(const std::string& links, const std::string& port) {
  const auto name = links.find(fmt::format(" {}@", port));
  if (name == std::string::npos) return false;
  const auto flags = links.find('<', name);
  return links.substr(flags, links.find('>', flags) - flags).find(",UP") == std::string::npos;
}

}  // namespace

host_network host_network::star(int hosts, bandwidth link) {
  return {.hosts = hosts, .link = link};
}

host_network host_network::tree(int hosts, int hosts_per_leaf, bandwidth link, bandwidth uplink) {
  return {.hosts = hosts, .hosts_per_leaf = hosts_per_leaf, .link = link, .uplink = uplink};
}

host_network host_network::two_rails(int hosts, bandwidth link) {
  return {.hosts = hosts, .rails = 2, .link = link};
}

void check_within(const char* key, int value, int low, int high) {
  if (value < low || value > high)
    throw input_error(key, std::to_string(value), fmt::format("{} to {}", low, high));
}

void check(const host_network& network) {
  const auto shapeable = [](const char* key, bandwidth rate) {
    if (rate < bandwidth(125e3) || rate > bandwidth(1.25e9))
      throw input_error(key, to_string(rate), "1 Mb/s to 10 Gb/s");
  };
  check_within("hosts", network.hosts, 1, 256);
  check_within("hosts per leaf", network.hosts_per_leaf, 0, network.hosts);
  check_within("rails", network.rails, 1, 8);
  check_within("mtu", network.mtu, 576, 9000);
  check_within("burst", network.burst_us, 1, 100000);
  check_within("queues", network.queues, 1, 1024);
  if (!std::has_single_bit(static_cast<unsigned>(network.queues)))
    throw input_error("queues", std::to_string(network.queues), "a power of two");
  shapeable("link", network.link);
  shapeable("uplink", network.uplink);
  for (const auto& [host, rate] : network.other_links) {
    check_within("host of another link", host, 0, network.hosts - 1);
    shapeable("link", rate);
  }
}

std::string emulated_hosts::missing() {
  if (geteuid() != 0) return "emulated hosts need root, for network namespaces";
  for (const auto& [program, package] : {std::pair{"ip", "iproute2"},
                                         {"tc", "iproute2"},
                                         {"ethtool", "ethtool"},
                                         {"nsenter", "util-linux"},
                                         {"unshare", "util-linux"},
                                         {"timeout", "coreutils"}})
    if (!is_installed(program))
      return fmt::format("emulated hosts need the program {} (package {})", program, package);
  return "";
}

std::string emulated_hosts::name(int host) {
  return fmt::format("h{}", host);
}

emulated_hosts::emulated_hosts(const host_network& network) : network_(buildable(network)) {
  const auto bytes_per_s = [](bandwidth rate) { return fmt::format("{:.0f}", rate.value()); };
  const int per_leaf = network.hosts_per_leaf ? network.hosts_per_leaf : network.hosts;
  std::string links;
  for (int host = 0; host < network.hosts; ++host)
    links += bytes_per_s(network.link_of(host)) + " ";
  std::ofstream(namespaces_.outside("/run/build_network")) << scripts::build_network;
  output_of(namespaces_.inside({"sh", "/run/build_network", std::to_string(network.hosts),
                                std::to_string(per_leaf), std::to_string(network.rails), links,
                                bytes_per_s(network.uplink), std::to_string(network.mtu),
                                std::to_string(network.burst_us), network.segments ? "1" : "4",
                                std::to_string(network.queues)}));
}

program_result emulated_hosts::run_on(int host, const command_line& command) const {
  command_line on_host = {"ip", "netns", "exec", name(host)};
  on_host.insert(on_host.end(), command.begin(), command.end());
  return run_program(namespaces_.inside(on_host));
}

interface_bytes emulated_hosts::bytes(int host, int rail) const {
  const auto wanted = port({host, fmt::format("rail{}", rail)}) + ":";
  std::ifstream devices(fmt::format("/proc/{}/net/dev", namespaces_.keeper()));
  for (std::string line; std::getline(devices, line);) {
    std::istringstream row(line);
    std::string device;
    if (!(row >> device) || device != wanted) continue;
    std::array<std::uint64_t, 16>
        columns{};  // the port's: 8 of what it received, 8 of what it sent
    for (auto& column : columns) row >> column;
    return {.sent = columns[0], .received = columns[8]};
  }
  throw std::out_of_range("no interface " + wanted);
}

void emulated_hosts::pull(const cable& cable) const {
  output_of(namespaces_.inside({"ip", "link", "set", port(cable), "down"}));
}

void emulated_hosts::plug(const cable& cable) const {
  output_of(namespaces_.inside({"ip", "link", "set", port(cable), "up"}));
}

std::vector<cable> emulated_hosts::pulled_cables() const {
  std::vector<std::string> interfaces = {"control"};
  for (int rail = 0; rail < network_.rails; ++rail)
    interfaces.push_back(fmt::format("rail{}", rail));
  const auto links = output_of(namespaces_.inside({"ip", "-o", "link", "show"}));
  std::vector<cable> pulled;
  for (int host = 0; host < network_.hosts; ++host)
    for (const auto& interface : interfaces)
      if (is_down(links, port({host, interface}))) pulled.push_back({host, interface});
  return pulled;
}

}  // namespace attnsim::hosts
