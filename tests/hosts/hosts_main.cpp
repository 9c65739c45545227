// attnsim-hosts: emulated hosts for the time of one command.
//
//   attnsim-hosts --hosts 8 --per-leaf 4 --link "200 Mb/s" --uplink "400 Mb/s" run PROGRAM ARGS...
//   attnsim-hosts --hosts 2 --rails 2 probe
//   attnsim-hosts --hosts 16 --link "2 Gb/s" --mtu 9000 slices --share 12 --gpus 2 PROGRAM ARGS...
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "model/error.hpp"
#include "tests/hosts/launch.hpp"
#include "tests/hosts/link_probe.hpp"
#include "tests/hosts/slices.hpp"

namespace {

using namespace attnsim;
using namespace attnsim::hosts;

bandwidth parse_rate(const std::string& flag, const std::string& text) {
  try {
    return parse<bandwidth>(text);
  } catch (const std::invalid_argument&) {
    throw input_error(flag, text, std::string(expectation<bandwidth>()));
  }
}

int run(const emulated_hosts& hosts, const launch_request& request) {
  const auto result = launch(hosts, request);
  fmt::print("{}", result.output);
  fmt::print(stderr, "{}", result.errors);
  if (result.status != 0) fmt::print(stderr, "attnsim-hosts: {}\n", result.failure());
  return result.status == 0 ? 0 : 1;
}

int run(const emulated_hosts& hosts, const slice_request& request) {
  const auto result = run_on_slices(hosts, request);
  fmt::print("{}", result.output);
  fmt::print(stderr, "{}", result.errors);
  if (result.status == 137)
    fmt::print(stderr, "attnsim-hosts: not done within {} s\n", request.time_out.count());
  return result.status;
}

/// HOST=RATE, such as 3=500 Mb/s.
std::pair<int, bandwidth> parse_other_link(const std::string& text) {
  const auto equals = text.find('=');
  int host = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + std::min(equals, text.size()), host);
  if (equals == std::string::npos || error != std::errc() || end != text.data() + equals)
    throw input_error("--other-link", text, "HOST=RATE, such as 3=500 Mb/s");
  return {host, parse_rate("--other-link", text.substr(equals + 1))};
}

/// PROGRAM ARGS... of a subcommand.
template <typename Request>
void take_program(const CLI::App& subcommand, Request& request) {
  auto command = subcommand.remaining();
  if (command.empty()) throw input_error(subcommand.get_name(), "", "a program");
  request.program = command.front();
  request.arguments.assign(command.begin() + 1, command.end());
}

nlohmann::json to_json(const link_fit& fit) {
  return {{"latency_s", fit.latency.value()},
          {"bandwidth_bytes_per_s", fit.rate.value()},
          {"worst_error", fit.worst_error}};
}

std::filesystem::path beside_this_program(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename(name);
}

/// What a rank is started with where a link's queues need it; std::runtime_error where it is not there.
std::string numbers_for(const host_network& network) {
  if (network.queues <= 16) return "";
  const auto library = beside_this_program("libattnsim-connection-numbers.so");
  if (!exists(library))
    throw std::runtime_error(
        fmt::format("queues: '{}': more than 16 need {}", network.queues, library.string()));
  return library;
}

int probe(const emulated_hosts& hosts) {
  const auto program = beside_this_program("attnsim-link-probe");
  auto links = nlohmann::json::array();
  for (const auto& link : measure_links(hosts, program))
    links.push_back({{"link", link.kind.name},
                     {"one_way", to_json(link.one_way_fit)},
                     {"both_ways", to_json(link.both_ways_fit)}});
  fmt::print("{}\n", nlohmann::json{{"links", links}}.dump(2));
  return 0;
}

int main_or_throw(int argc, char** argv) {
  CLI::App app("Emulated hosts with shaped links, for the time of one command");
  host_network network;
  launch_request request;
  slice_request slices;
  std::vector<std::string> other_links;
  std::string link = "200 Mb/s", uplink;
  int time_out_s = 60;
  app.add_option("--hosts", network.hosts, "number of hosts")->capture_default_str();
  app.add_option("--per-leaf", network.hosts_per_leaf,
                 "hosts a leaf bridge; 0: one bridge for all");
  app.add_option("--rails", network.rails, "interfaces a host")->capture_default_str();
  app.add_option("--link", link, "rate of a host's cable, each direction")->capture_default_str();
  app.add_option("--other-link", other_links, "HOST=RATE: a host whose cable has another rate")
      ->allow_extra_args(false);
  app.add_option("--uplink", uplink,
                 "rate of a leaf's cable to the root; as --link where not given");
  app.add_option("--mtu", network.mtu, "bytes of an IP packet")->capture_default_str();
  app.add_option("--burst", network.burst_us, "us at its rate that a rested link passes at once")
      ->capture_default_str();
  app.add_flag("!--offload", network.segments,
               "up to four packets pass the links' queues as one, a quarter of the work");
  app.add_option("--queues", network.queues,
                 "of a link, among which it divides its rate evenly; connections are dealt out to "
                 "them by the other host, those of slices beyond 16 by their number too")
      ->capture_default_str();
  app.require_subcommand(1);
  auto* runs = app.add_subcommand("run", "run an MPI program")->prefix_command();
  runs->add_option("--ranks", request.ranks, "0: one a host");
  runs->add_option("--time-out", time_out_s, "seconds")->capture_default_str();
  auto* on_slices =
      app.add_subcommand("slices",
                         "run a program of GPUs, a rank a host, each with a share of a card")
          ->prefix_command();
  on_slices->add_option("--gpus", slices.gpus, "cards, dealt out in turn")->capture_default_str();
  on_slices->add_option("--share", slices.share, "per cent of a card's multiprocessors for a rank")
      ->capture_default_str();
  on_slices->add_option("--channels", slices.channels, "NCCL's channels")->capture_default_str();
  on_slices->add_option("--time-out", time_out_s, "seconds")->capture_default_str();
  app.add_subcommand("probe", "measure latency and bandwidth of every kind of link");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  network.link = parse_rate("--link", link);
  network.uplink = uplink.empty() ? network.link : parse_rate("--uplink", uplink);
  for (const auto& text : other_links) network.other_links.insert(parse_other_link(text));
  request.time_out = slices.time_out = std::chrono::seconds(time_out_s);
  check(network);
  if (on_slices->parsed()) {
    take_program(*on_slices, slices);
    slices.connection_numbers = numbers_for(network);
    check(slices, network, static_cast<int>(std::thread::hardware_concurrency()));
    return run(emulated_hosts(network), slices);
  }
  if (!runs->parsed()) return probe(emulated_hosts(network));
  take_program(*runs, request);
  return run(emulated_hosts(network), request);
}

}  // namespace

int main(int argc, char** argv) try {
  return main_or_throw(argc, argv);
} catch (const input_error& error) {
  fmt::print(stderr, "attnsim-hosts: {}\n", error.what());
  return 2;
} catch (const std::exception& error) {
  fmt::print(stderr, "attnsim-hosts: {}\n", error.what());
  return 1;
}
