#include "tests/hosts/slices.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <thread>

#include "model/error.hpp"
#include "tests/hosts/scripts.hpp"

namespace attnsim::hosts {
namespace {

/// This process and those that it starts take turns of 0.1 ms on a core, the least there is, instead of 3 ms: many ranks' threads
/// then wait less for each other. Linux before 6.12 has no such choice and goes on as it was.
void take_short_turns() {
  struct {  // sched_setattr(2); the headers that have it do not go with <sched.h>
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{.size = sizeof attributes, .runtime_ns = 100'000};
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

std::string missing_for_slices() {
  if (!is_installed("nvidia-cuda-mps-control"))
    return "slices of GPUs need the program nvidia-cuda-mps-control (NVIDIA's driver)";
  return "";
}

bandwidth fastest_link(int hosts, int cores) {
  return bandwidth(125e6 * cores / hosts);
}

void check(const slice_request& request, const host_network& network, int cores) {
  check_within("gpus", request.gpus, 1, network.hosts);
  check_within("channels", request.channels, 1, 32);
  const int on_one = (network.hosts + request.gpus - 1) / request.gpus;
  check_within("share", request.share, 1, 100 / on_one);
  const auto fastest = fastest_link(network.hosts, cores);
  for (int host = 0; host < network.hosts; ++host) {
    if (const auto link = network.link_of(host) * static_cast<double>(network.rails);
        link > fastest)
      throw input_error("link", to_string(link),
                        fmt::format("at most {} a host, which {} cores carry for {} hosts",
                                    to_string(fastest), cores, network.hosts));
  }
}

program_result run_on_slices(const emulated_hosts& hosts, const slice_request& request) {
  check(request, hosts.network(), static_cast<int>(std::thread::hardware_concurrency()));
  if (const auto lack = missing_for_slices(); !lack.empty()) throw std::runtime_error(lack);
  hosts.namespaces().write_script("/run/run_on_slices", scripts::run_on_slices);
  hosts.namespaces().write_script("/run/enter_slice", scripts::enter_slice);
  hosts.namespaces().write_script("/run/launch", scripts::launch);
  take_short_turns();
  auto command = contained(request.time_out);
  command.push_back("/run/run_on_slices");
  const auto& network = hosts.network();
  for (const int number :
       {network.hosts, request.gpus, request.share, request.channels, network.rails})
    command.push_back(std::to_string(number));
  command.insert(command.end(), {request.connection_numbers, request.program});
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  return run_program(hosts.namespaces().inside(command));
}

}  // namespace attnsim::hosts
